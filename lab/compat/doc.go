// Package compat holds that an older host and a newer control plane, and the other way
// round, understand each other: the programs of an earlier commit of main, whose hash
// is in testdata/earlier, against those of this tree, over a whole life of a node.
//
// The hash moves forward when the protocol drops what that commit speaks, and at no
// other time. A clone that does not have the commit fails, and says so.
package compat
