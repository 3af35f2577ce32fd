package link

// Code says why the control plane, or the host on its behalf, refused. Each
// has one sentence, one command and one retry rule.
type Code string

// The codes.
const (
	TokenMalformed    Code = "token_malformed"
	TokenUnknown      Code = "token_unknown"
	TokenExpired      Code = "token_expired"
	TokenUsed         Code = "token_used"
	TokenRevoked      Code = "token_revoked"
	ScopeMismatch     Code = "scope_mismatch"
	BadProof          Code = "bad_proof"
	PinMismatch       Code = "pin_mismatch"
	Pending           Code = "pending"
	Refused           Code = "refused"
	EnrolmentConflict Code = "enrolment_conflict"
	ProtocolTooOld    Code = "protocol_too_old"
	ProtocolTooNew    Code = "protocol_too_new"
	Busy              Code = "busy"
	StoreUnavailable  Code = "store_unavailable"
	// The rest answer a node on its link. NodeUnknown is an orphan, known by
	// certificate but not by record.
	NodeRevoked Code = "node_revoked"
	NodeUnknown Code = "node_unknown"
	// NodeCloned answers the second of two machines that use one key.
	NodeCloned Code = "node_cloned"
)
