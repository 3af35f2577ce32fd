// Package ca is the mesh root and the certificates under it.
//
// A certificate says which key is which node, and nothing else: what a node may
// do is looked up by its key at every request. So no date in a certificate
// decides anything here. They are there for other people's tools, and a machine
// that was away for a year, or lives in 1970, is recognised all the same.
//
// The root's key is kept in the state and lives 30 years. Another may take its place
// (Rotate): each root signs the next, and what leads back to the first is shown to
// every node, so that one that knows an earlier root only recognises the mesh. The controller's own
// key is made at each start and kept in memory only: a node recognises the root
// and the name, never the certificate.
package ca
