// Package state is what the control plane remembers: one bbolt file, opened by
// one process. Everything that would have to move to another store, should one
// machine be outgrown, is in this package and nowhere else.
//
// It promises: a transaction happens whole or not at all, and is on disk when
// Update or Batch returns nil; a second process that opens the file is told
// who holds it. It holds no rule of tokens, admission or composition; those
// are the packages above, and each does what it does in one transaction.
//
// After a crash at any instant the file holds every transaction that was
// acknowledged and no part of any other. What is only ever told to people and
// can be lost (when a node was last seen) is kept in memory by its owner and
// written here in batches.
//
// A file that is damaged is refused at the start, when all of it is read, and
// never set aside: it holds the key of the mesh. Damage that comes later is the
// error of the transaction that meets it, and ends nothing else.
//
// Of the secrets of others nothing is here: a token's record has the public
// half of its key. The mesh root's private key is, which is why the file is
// its owner's alone (0600).
package state
