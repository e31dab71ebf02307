package mcpserver

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeal(t *testing.T) {
	ours, others := newSeal(), newSeal()
	state := requestState{Operation: "tc_1", Approval: shown{ID: "ap_1", ArgumentsHash: "a", PreviewDigest: "p"}, Owner: "ann", Tool: "write", Hash: "h", Round: 2, Expires: time.Now().Add(time.Hour).UTC().Round(0)}
	sealed := ours.close(state)
	if got, err := ours.open(sealed); err != nil || !cmp.Equal(got, state) {
		t.Errorf("open(close(%+v)) = %+v, %v", state, got, err)
	}
	if again := ours.close(state); again == sealed {
		t.Error("the same state is sealed in the same way twice")
	}
	if strings.Contains(sealed, "tc_1") || len(sealed) > maxState {
		t.Errorf("close(%+v) = %q: it shows something, or is longer than a client may send back", state, sealed)
	}
	for name, forged := range map[string]string{
		"empty": "", "not base64": "***", "short": "AAAA", "long": strings.Repeat("A", maxState+4),
		"another host's": others.close(state), "its end": sealed[1:],
		"a byte": sealed[:20] + string(sealed[20]^1) + sealed[21:], "with padding": sealed + "=",
	} {
		if got, err := ours.open(forged); err == nil {
			t.Errorf("open of %s state = %+v, want an error", name, got)
		}
	}
}

func TestStateIsAboutItsCall(t *testing.T) {
	state := requestState{Owner: "ann", Tool: "write", Hash: "h", Expires: time.Now().Add(time.Minute)}
	past := state
	past.Expires = time.Now().Add(-time.Second)
	for _, tt := range []struct {
		name              string
		state             requestState
		owner, tool, hash string
		want              string // in the error; "" means none
	}{
		{"its own", state, "ann", "write", "h", ""},
		{"another owner", state, "bob", "write", "h", "not made by this host"},
		{"another tool", state, "ann", "wipe", "h", "another tool"},
		{"other arguments", state, "ann", "write", "i", "other arguments"},
		{"too late", past, "ann", "write", "h", "expired"},
	} {
		err := tt.state.check(tt.owner, tt.tool, tt.hash)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: check = %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestHashOf(t *testing.T) {
	same := hashOf([]byte(`{"a":1,"b":[1.0,"x"]}`))
	if got := hashOf([]byte(" {\"b\": [1.0, \"\\u0078\"],\n\"a\":1}")); got != same {
		t.Error("the same arguments in another spelling have another hash")
	}
	for _, other := range []string{`{"a":1,"b":[1,"x"]}`, `{"a":1}`, ``, `null`, `{`, `[]`} {
		if hashOf([]byte(other)) == same {
			t.Errorf("%s has the hash of other arguments", other)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s := newSeal()
	f.Add(s.close(requestState{Operation: "tc_1"}))
	f.Add("")
	f.Add("eyJmbGlnaHQiOiJ0Y18xIn0")
	f.Fuzz(func(t *testing.T, sealed string) {
		if got, err := newSeal().open(sealed); err == nil {
			t.Errorf("a new key opens %q: %+v", sealed, got)
		}
	})
}
