// Package repository is what a control plane serves to machines that are no nodes
// yet: the packages of a release in their signed repository for pacman, and the
// floor tarball, over plain HTTP, to be read and nothing else.
//
// What is served comes from two places. The seed (/var/lib/nox-mesh-controller/seed)
// is what the first node's bundle brought, laid down by root's host; a bundle that
// was pushed later has it in the content store, and a record in the state names it.
// Both have a list (bundle/seed), signed by the release key. Of an architecture the
// one with the higher counter is served.
//
// What it promises:
//
//   - Nothing is served before the list was verified under the release root in
//     force, and each file of it has the size and the digest that the list says.
//     The files stay open from then on: what happens to their names changes
//     nothing that is served.
//   - The files of an architecture change all at once. Who asks is served from one
//     list; who asked for the database before a change and for a package after it
//     is told that it is not there, and asks for the database again.
//   - An older list never takes the place of a newer one.
//   - There is no path but those of the lists, letter by letter, no listing, no
//     method but GET and HEAD, and no symlink is followed.
//   - Whoever reads slowly, or connects too often, is closed; nobody is who is a
//     node: their connections are counted elsewhere.
//
// What it does not: it says nothing of a control plane that was taken over, which
// can answer what it likes. The next machine is safe from that by what it was told
// elsewhere: the digest of the tarball and the fingerprint of the key, which
// `mesh-controller join` verifies by itself before it prints them.
//
// After a kill at any instant the next start serves what the state and the seed
// say, the old or the new.
package repository
