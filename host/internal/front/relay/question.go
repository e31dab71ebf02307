package relay

import (
	"encoding/json"
	"fmt"
	"strings"
)

// What a host asks its client carries the number of the host in its id. A late
// answer to a host that has gone can so never be taken for one to the next,
// which counts from 1 again.

// questionOf is a request of a host as its client gets it.
func questionOf(host int, m message, line []byte) []byte {
	id, _ := json.Marshal(prefix(host) + string(m.ID)) // never fails
	return with(line, "id", id)
}

// takenBack is a notification of a host that it does not want an answer any more,
// as its client gets it.
func takenBack(host int, line []byte) []byte {
	var n struct {
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &n) != nil || n.Params["requestId"] == nil {
		return line
	}
	n.Params["requestId"], _ = json.Marshal(prefix(host) + string(n.Params["requestId"])) // never fails
	params, err := json.Marshal(n.Params)
	if err != nil {
		return line
	}
	return with(line, "params", params)
}

// answerTo is an answer of the client as the host gets it, or false if that host
// has not asked.
func answerTo(host int, m message, line []byte) (answer []byte, asked bool) {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return nil, false
	}
	own, asked := strings.CutPrefix(id, prefix(host))
	if !asked || !json.Valid([]byte(own)) {
		return nil, false
	}
	return with(line, "id", json.RawMessage(own)), true
}

func prefix(host int) string { return fmt.Sprintf("host-%d:", host) }
