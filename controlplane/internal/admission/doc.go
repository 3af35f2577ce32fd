// Package admission decides who becomes a node: tokens, enrolments, approval,
// revocation.
//
// What it promises:
//
//   - One place of a token is one node, however many hosts come with it at
//     once: everything about one enrolment is one transaction.
//   - The same enrolment id with the same key gets the same answer for ever:
//     a host may be killed, or an answer lost, between any two steps.
//   - The token's place is reserved by the enrolment and used up by the ack. A
//     reservation is never given back by a timer; a host that comes back with
//     another token gives its first one's place back.
//   - A refusal changes nothing; the caller writes it into the log.
//   - The secret of a token is in Create's answer and nowhere else.
//
// Expiry is judged by this side's clock only. Everything a machine says about
// itself is a claim; it is kept as it was when the decision was made.
package admission
