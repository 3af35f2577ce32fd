// Package journey holds the promises that take more than one program to keep,
// as scripts a user could read (testdata/script): the binaries of a release, in
// folders that stand for machines, as whoever runs the tests.
package journey
