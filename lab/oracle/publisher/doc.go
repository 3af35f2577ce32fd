// Package publisher holds mesh-release to its word on a bad day: no space, no
// permission, a wrong passphrase, a source that changes, a kill.
//
// It runs the binary that users get on a small source tree. Whatever happens, the
// directory of a release is what it was or one whole release, the fault is one line
// with the exit code of its kind, and the next run gives the bytes that an
// undisturbed one gives.
//
// It has tests only. Those that mount a full disk need root and are built with the
// tag "machine"; those that fail system calls need strace.
package publisher
