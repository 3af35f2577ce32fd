// Package admin is the door for the person who runs the mesh: HTTP and JSON
// over a unix socket that only root and the control plane's own user may speak
// through. Each verb is one POST; both ends are here, so that the commands and
// the service cannot disagree.
//
// A bundle is the one question that is not a message: it is read as it comes, by
// the service, whose alone the content store is.
//
// A fault travels whole: kind, sentence and remedy are the same on the command
// line as they were in the service.
package admin
