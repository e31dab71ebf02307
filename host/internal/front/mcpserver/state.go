package mcpserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// requestState is what the host must know when a client repeats a call with an answer. It
// travels through the client, which the approval is meant to control. So it is sealed and
// decides nothing: only the approval's record says whether the call may run.
type requestState struct {
	Operation string    `json:"operation"` // the id of the call
	Approval  shown     `json:"approval"`  // what the user was asked to approve; zero for a tool's question
	Question  string    `json:"question"`  // id of the tool's question; "" for an approval
	Owner     string    `json:"owner"`     // the caller
	Tool      string    `json:"tool"`
	Hash      string    `json:"hash"` // of the arguments
	Round     int       `json:"round"`
	Expires   time.Time `json:"expires"`
}

// maxState bounds the bytes of a request state that a client sends.
const maxState = 4 << 10

// seal encrypts and authenticates states. Its key lives as long as the server, and so do
// operations.
type seal struct{ aead cipher.AEAD }

func newSeal() seal {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // impossible: the key has a valid length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // impossible
	}
	return seal{aead}
}

// close returns the state as the client gets it.
func (s seal) close(state requestState) string {
	text, _ := json.Marshal(state) // strings, a number and a time

	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)) //nolint:gosec // the AEAD adds the nonce itself
}

var errForged = errors.New("the request state was not made by this host, or before it was started")

// open returns the state that close sealed. It does not check who sent it.
func (s seal) open(sealed string) (requestState, error) {
	var state requestState
	if len(sealed) > maxState {
		return state, errForged
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return state, errForged
	}
	text, err := s.aead.Open(nil, nil, box, nil)
	if err != nil || json.Unmarshal(text, &state) != nil {
		return requestState{}, errForged
	}
	return state, nil
}

// check refuses a state that belongs to another call or owner.
func (r requestState) check(owner, tool, hash string) error {
	switch {
	case r.Owner != owner:
		return errForged // do not reveal that it belongs to another user
	case r.Tool != tool || r.Hash != hash:
		return errors.New("the request state belongs to a call of another tool, or with other arguments")
	case time.Now().After(r.Expires):
		return errors.New("the request state has expired")
	}
	return nil
}
