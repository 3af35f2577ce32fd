// Package powercut cuts the power of a machine in the middle of an apply, and
// looks at what is on its disk.
//
// The machine is a real Linux in qemu, with an ext4 on an NVMe disk. The host's
// binary brings a thousand files from generation to generation (Of, Document),
// and qemu is killed at a random moment: what the guest had not written to its
// disk is gone. Judge, which shares no code with the host, then says of every
// file whether it is wholly as in one of the generations that it may be of. The
// host runs once more on what is left, and must bring all of it to the newest,
// with a store that agrees.
//
// What it cannot see: a disk that forgets what it was sent and not told to
// flush. Killing qemu loses the guest's memory only; every write that reached
// the disk is kept, in the order it came.
//
// The same machine is one whose clock can be set, and that can sleep: that a host
// heeds it is looked at here as well.
//
// The tests are built with the tag "machine". NOX_POWERCUTS says how many cuts
// they make (5), NOX_POWERCUT_SEED repeats the moments of another run.
package powercut
