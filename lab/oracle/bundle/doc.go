// Package bundle holds bundles, and the content stores they are read into, against
// the programs of others: what mesh-release makes and mesh-host stores is an OCI
// image layout, and must be one to them.
//
// It has tests only; where a program is missing they are skipped and say so. Each
// program runs in a network namespace of its own with nothing in it; a registry
// (Debian's docker-registry) has one with a loopback, and who talks to it is let
// in. What each said, and what mesh-host says of the same bundle, goes into the
// table that lab/testreport prints.
//
// What does not go, and how it goes:
//
//   - podman load and ctr import take a file for all of its images, and a bundle is
//     more than that: podman pull oci-archive:FILE:IMAGE takes one, and ctr images
//     import --no-unpack takes all of them.
//   - skopeo 1.9 writes an index it copies anew, without what it does not know
//     (artifact types), which is another digest. Copies of a bundle are made by oras.
//   - skopeo and podman do not hash an index or a manifest that they find in a
//     layout. Whoever cares for the signature verifies first.
//   - oras cp copies what is signed, with -r also what has it as its subject:
//     signatures and release roots. What it writes is a folder: mesh-release bundle
//     import makes the bundle's file of it.
//
// How fast a bundle is read beside theirs is measured in lab/bench/bundle.
package bundle
