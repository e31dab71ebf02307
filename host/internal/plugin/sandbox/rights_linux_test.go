package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// rights are the rights of a process beyond those of its user.
type rights struct {
	Sets       map[string]string // of capabilities, by their names in /proc/PID/status
	SecureBits int
	Groups     string // supplementary ones
}

// rightsPrograms say what rights the program has.
func rightsPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"rights": func([]string) error {
			got, err := ownRights()
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(got)
		},
	}
}

func ownRights() (rights, error) {
	got := rights{Sets: map[string]string{}}
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return got, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if set, ok := strings.CutPrefix(name, "Cap"); ok {
			got.Sets[set] = strings.TrimSpace(value)
		}
		if name == "Groups" {
			got.Groups = strings.TrimSpace(value)
		}
	}
	got.SecureBits, err = unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	return got, err
}

// TestNoRightsAreLeft: a plugin has no capabilities and cannot gain any by executing a file, not
// even as user 0, and is in none of the host's groups unless it runs as the host's user.
func TestNoRightsAreLeft(t *testing.T) {
	removeArena(t)
	if os.Geteuid() == 0 {
		joinGroup(t, 4242)
	}
	host, err := ownRights()
	must(t, err)
	const none, locked = "0000000000000000", 0xef // SECBIT_*: all but KEEP_CAPS, and their locks
	nothing := map[string]string{"Inh": none, "Prm": none, "Eff": none, "Bnd": none, "Amb": none}
	bounded := map[string]string{"Inh": none, "Prm": none, "Eff": none, "Bnd": host.Sets["Bnd"], "Amb": none}
	asHost, asUser := rights{nothing, locked, host.Groups}, rights{bounded, 0, host.Groups}
	inside := rights{nothing, locked, groupsInside(t)}
	for _, tt := range []struct {
		name       string
		level      Isolation
		as         RunAsMode
		root, user rights // of whose host
	}{
		// The control: the rights of the host's own user.
		{"off, as the host", Off, RunAsHost, host, host},
		{"basic, as the host", Basic, RunAsHost, asHost, asUser},
		{"isolated, as the host", Isolated, RunAsHost, inside, inside},
		{"strict, as the host", Strict, RunAsHost, inside, inside},
		// A program that keeps all its capabilities still becomes another user. The plugins of
		// an ordinary user cannot.
		{"off, as another", Off, RunAsUser, rights{bounded, 0, ""}, host},
		{"basic, as another", Basic, RunAsUser, rights{nothing, locked, ""}, asUser},
		{"strict, as another", Strict, RunAsUser, rights{nothing, locked, ""}, inside},
		{"basic, as the workspace's owner", Basic, RunAsAuto, rights{nothing, locked, ""}, asUser},
		{"isolated, as the workspace's owner", Isolated, RunAsAuto, rights{nothing, locked, ""}, inside},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			t.Cleanup(s.close)
			p := s.profile([]string{"attack", "rights"})
			p.Confinement.Isolation, p.Confinement.RunAs = tt.level, RunAs{Mode: tt.as, UID: owner, GID: owner}
			want := tt.user
			if os.Geteuid() == 0 {
				want = tt.root
			}
			var got rights
			must(t, json.Unmarshal([]byte(readAll(t, started(t, newLauncher(t), p))), &got))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

// groupsInside returns this process's groups as a user namespace has them that knows
// only its own.
func groupsInside(t *testing.T) string {
	t.Helper()
	groups, err := os.Getgroups()
	must(t, err)
	names := make([]string, len(groups))
	for i, group := range groups {
		if names[i] = "65534"; group == os.Getegid() {
			names[i] = fmt.Sprint(group)
		}
	}
	return strings.Join(names, " ")
}

// joinGroup makes this process, which a launcher is forked from, a member.
func joinGroup(t *testing.T, group int) {
	t.Helper()
	before, err := syscall.Getgroups()
	must(t, err)
	must(t, syscall.Setgroups([]int{group}))
	t.Cleanup(func() { must(t, syscall.Setgroups(before)) })
	if host, err := ownRights(); err != nil || host.Groups != fmt.Sprint(group) {
		t.Fatalf("groups = %q, %v, want %d", host.Groups, err, group)
	}
}
