// Package module is what a node shall be: modules, the rules of where they are
// present, and their composition into one declaration a node.
//
// It promises: what is stored as a node's wanted declaration is valid, names
// nothing twice, and carries each resource exactly as its module wrote it but
// for the ids, which become MODULE/ID; the node's generation grows when, and
// only when, the composition changes. A conflict is refused when it is
// declared. One that only a later node brings about leaves that node with the
// declaration it had, and is written down on it.
//
// What was pushed as a bundle is kept beside the modules until it is placed, one
// for each name and architecture, and no node has anything of it.
//
// Everything happens within the caller's transaction; a crash leaves all of a
// change or nothing.
package module
