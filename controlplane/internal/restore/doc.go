// Package restore brings a control plane back from a backup (package backup), in two
// halves that different processes may do, and that may be killed anywhere:
//
//	backup --Stage--> restored.new/ --rename--> restored/ --TakeUp--> the state
//
// Stage reads a backup and makes beside the state, in restored.new/, everything that
// is to be there, down to the epoch: one more than any that is known. What is not
// whole, or may not take the place of what is there, is refused before the rename,
// and restored.new/ removed; a kill leaves it for the next Stage to remove. Stage is
// done by the user who owns the directory, never by root in a directory that is
// another's.
//
// The rename to restored/ is what counts. From then on the backup is what the
// control plane will be, and TakeUp, at its next start, moves file after file: what
// is there to former-DATE/, what was staged into its place. Which are still to be
// moved is said by restored/ itself, so it is done again from wherever it was
// killed, and the epoch, which was written before, is raised once. restored/ goes
// last.
//
// Nothing that was there is ever removed: former-DATE/ has all of it, its content
// too, until a person takes it away.
package restore
