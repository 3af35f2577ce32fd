// Package door is the local door of a daemon: a unix socket at which its own
// program asks for things by name, in HTTP and JSON.
//
// It promises: who is let in is decided by the kernel's word, not by the file
// mode alone. A question is bounded and strictly read, an answer bounded. A fault
// travels whole, so that kind, sentence and remedy are on the command line what
// they were in the daemon. A question is asked again by itself only when nothing
// of it arrived, or when to ask it twice does the same: that is part of the verb,
// and no caller can forget it. What cannot be asked is told in the words of the
// program (Client.Tell), and how it could not in the error (HowOf).
//
// It does not promise that a question which was cut was not answered: the daemon
// may have done it and ended before it could say so. Nothing of it is kept on the
// disk but the socket; a dead one that a crash left is replaced by the next Listen.
package door
