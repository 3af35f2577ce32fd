// Package bundle holds bundles, and the content stores they are read into, against
// the programs of others: what mesh-release makes and mesh-host stores is an OCI
// image layout, and must be one to them.
//
// It has tests only; where a program is missing they are skipped and say so. How
// fast a bundle is read beside theirs is measured in lab/bench/bundle.
package bundle
