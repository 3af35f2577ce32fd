// Package wire is what the control plane answers its nodes: enrolment, the link
// and what goes with it, over TLS 1.3, HTTP/2 or HTTP/1.1.
//
// What it promises:
//
//   - Who asks is decided at each request: a certificate of this mesh, its key
//     known, not revoked. A revoked node gets as far as being told so.
//   - A node may read its own declaration and the content that names, and send
//     its own reports and inventory. There is no request in which it could name
//     another node.
//   - One link a node. The newest wins; the end of an older one changes nothing.
//   - A change that was committed reaches an open link at once; a link that
//     opens gets the declaration as it is then. Nothing is lost in between,
//     because what is sent is always read from the state.
//   - A peer that stops reading or writing is closed within 30 s; only an
//     enrolment's body may take two minutes.
//   - Connections, those over which no known node has asked yet, and the bytes
//     of bodies are bounded, in all and for each who sends. A stranger's
//     connection ends after two minutes, strangers' bodies leave half of the
//     bytes to the nodes, and the machine's own connections have a lane nobody
//     else can fill.
//   - Whatever is refused is refused with a code, a sentence, a remedy and a
//     retry rule. A refused enrolment leaves a line in the log, nothing else.
//
// When a node was last seen is kept in memory and written in batches; a crash
// loses a minute of it. Nothing else here survives a crash, or has to.
package wire
