// Package backup is the file that a control plane is restored from.
//
// The file is what age makes (age-encryption.org/v1), closed to a passphrase or to
// recipients, so that it can be opened without us. In it is a tar of regular files:
//
//	manifest.json           what follows, with sizes and SHA-256; always the first
//	state.db                the state, as it was at one moment: the mesh root's key,
//	                        addresses, epoch, tokens, nodes, modules
//	mesh.json               which mesh this is
//	trust.json              what was remembered of releases, if there was anything
//	controller.toml         the operator's file, as information: no restore writes it
//	content/sha256/HEX      the content that the state names, in the manifest's order
//
// The manifest begins with the format and its version. One that is newer is refused
// by that number before anything else of it is looked at; what an older program must
// not pass over therefore raises it.
//
// It promises: what Read hands on is, to the last byte, what the manifest said, in
// its order, and nothing came before, between or behind. A file that was cut or
// changed anywhere is refused, at the latest when Read returns: who takes something
// of it before then must be able to throw it away. Memory does not grow with the
// content, only with the manifest, which is bounded, as are the names and sizes in
// it. A passphrase costs 256 MiB for a second (scrypt), and no file can ask for more.
//
// It does not promise who made the file: whoever knows a recipient can close a file
// to it. A backup says which mesh it is of, and a person compares that.
//
// Nothing here survives a crash or has to: a file that is being written has no name
// yet (internal/durable), and what is read is staged by package restore.
package backup
