package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
)

// TestPartial: a layer that is in force, and does not do all that it is for, is
// reported.
func TestPartial(t *testing.T) {
	basic, strict := Confinement{Isolation: Basic, RunAs: RunAs{Mode: RunAsHost}}, Confinement{Isolation: Strict, RunAs: RunAs{Mode: RunAsHost}}
	basic.UnlimitedProcesses, strict.UnlimitedProcesses = true, true
	limited, requires := basic, basic
	limited.UnlimitedProcesses = false
	requires.Require, requires.WarnOnMissing = []Layer{LayerCgroup}, true
	some := &groups{controllers: []string{"pids"}, missing: Gap{Layer: LayerCgroup, Reason: "not delegated: memory"}}
	for _, tt := range []struct {
		name   string
		c      Confinement
		groups *groups
		cpus   float64
		done   launch.Details
		want   []string // the beginnings of the reasons
	}{
		{"everything is there", basic, nil, 0, launch.Details{Landlock: 6}, nil},
		{"Linux 6.2", basic, nil, 0, launch.Details{Landlock: 3}, []string{"landlock: version 3 does not prevent signals to other processes"}},
		{"Linux 6.1", basic, nil, 0, launch.Details{Landlock: 2}, []string{"landlock: version 2 does not prevent truncating files", "landlock: version 2 does not prevent signals to other processes"}},
		{"other layers do it", strict, nil, 0, launch.Details{Landlock: 1}, nil},
		{"processors", basic, nil, 1.5, launch.Details{Landlock: 6}, []string{"cgroup: the limit cpus is not set"}},
		{"processes", limited, nil, 0, launch.Details{Landlock: 6}, []string{"rlimits: processes are not limited"}},
		{"processes of a group", limited, some, 0, launch.Details{Landlock: 6}, []string{"cgroup: not delegated"}},
		{"a part of what is required", requires, some, 0, launch.Details{Landlock: 6}, []string{"required cgroup: not delegated"}},
		{"loopback", strict, nil, 0, launch.Details{Landlock: 6, NoLoopback: "no"}, []string{"netns: its loopback address: no"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := newPlan(&Profile{Confinement: tt.c, Limits: Limits{CPUs: tt.cpus}}, nil)
			plan.groups = tt.groups
			var got []string
			for _, gap := range plan.partial(&tt.done) {
				said := string(gap.Layer) + ": " + gap.Reason
				if gap.Required {
					said = "required " + said
				}
				got = append(got, said)
			}
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("partial() = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestUsersOfTheirOwn: while one program's directory belongs to a user, no other program becomes
// that user, whatever their names.
func TestUsersOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	plan := func(name string) *plan {
		own := filepath.Join(dir, name)
		must(t, os.MkdirAll(own, 0o700))
		return &plan{profile: &Profile{Name: "fs", Own: []string{own}}} // both names make the same user likely
	}
	first := plan("fs")
	likely := first.ownUser()
	if again := first.ownUser(); again != likely {
		t.Errorf("the user of a program is %d and then %d", likely, again)
	}
	if likely < firstUser || likely >= firstUser+users {
		t.Errorf("user %d is not one of those that no account has", likely)
	}
	if os.Geteuid() != 0 {
		return // only root can give a directory away
	}
	must(t, os.Lchown(first.profile.Own[0], likely, likely))
	second := plan("redis").ownUser()
	if want := firstUser + (likely-firstUser+1)%users; second != want {
		t.Errorf("the second program's user is %d, want %d, the one after the first's", second, want)
	}
	if again := first.ownUser(); again != likely {
		t.Errorf("the first program's user has become %d, want %d still", again, likely)
	}
}

// TestUserMayNotWrite: if an administrator names a user that may not write the workspace, the
// error says so.
func TestUserMayNotWrite(t *testing.T) {
	named := map[RunAs][]Gap{{Mode: RunAsHost}: nil}
	if os.Geteuid() == 0 { // others have no choice
		named[RunAs{Mode: RunAsUser, UID: 60000, GID: 60000}] = []Gap{
			{Layer: LayerRunAs, Reason: "user 60000 may not write WORKSPACE", Remedy: "give it to that user (chown), or name its owner with run_as"},
		}
	}
	for user, want := range named {
		p := profile(t, "inspect")
		p.Workspace = t.TempDir()
		p.Confinement = Confinement{Isolation: Strict, Workspace: WriteWorkspace, WarnOnMissing: true, RunAs: user}
		report, err := newLauncher(t).Try(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		var got []Gap
		for _, gap := range report.Missing {
			if gap.Layer == LayerRunAs {
				gap.Reason = strings.ReplaceAll(gap.Reason, p.Workspace, "WORKSPACE")
				got = append(got, gap)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("run_as %+v (-want +got):\n%s", user, diff)
		}
	}
}

// TestGroupsAreKept: a program that requires limits for the whole tree, with a warning only,
// keeps what a control group provides without them.
func TestGroupsAreKept(t *testing.T) {
	l := newLauncher(t)
	some := &groups{dir: t.TempDir(), missing: Gap{Layer: LayerCgroup, Reason: "not delegated"}}
	l.groups = some
	t.Cleanup(func() { l.groups = nil })
	for _, warn := range []bool{true, false} {
		p := profile(t, "inspect")
		p.Confinement = Confinement{Require: []Layer{LayerCgroup}, WarnOnMissing: warn}
		group, err := l.makeGroup(newPlan(&p, nil))
		if (err == nil) != warn {
			t.Errorf("on_missing = warn is %v: group %v, error %v", warn, group, err)
		}
		group.remove()
	}
}

// TestUnsearchedIsNamed: the directories that were not searched form a readable list, and their
// gap differs from others of the mounts.
func TestUnsearchedIsNamed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dirs []string
		want string
	}{
		{[]string{"/w/a"}, "only checks protect files in a"},
		{[]string{"/w/a", "/w/b"}, "only checks protect files in a and b"},
		{[]string{"/w/a", "/w/b", "/w/c", "/w/d", "/w/e"}, "only checks protect files in a, b, c and 2 more directories"},
	} {
		plan := newPlan(&Profile{Workspace: "/w", unsearched: tt.dirs}, nil)
		plan.on[LayerMounts] = true
		var got []Gap
		for _, gap := range plan.partial(&launch.Details{}) {
			if gap.Unsearched {
				got = append(got, gap)
			}
		}
		if len(got) != 1 || got[0].Layer != LayerMounts || !strings.Contains(got[0].Reason, tt.want) {
			t.Errorf("not searched: %v, got the gaps %v, want %q", tt.dirs, got, tt.want)
		}
	}
}

// TestUnhidden: forbidden files that were not all searched for are reported. For a program that
// executes others, the report can say that those may see them.
func TestUnhidden(t *testing.T) {
	t.Parallel()
	const beyond = "too many files to search for all that paths.forbidden covers: only checks hide files in a"
	for _, tt := range []struct {
		name     string
		profile  Profile
		want     string
		unhidden bool
	}{
		{"all was searched", Profile{Confinement: Confinement{Exec: []string{"/usr"}}}, "", false},
		{"it executes programs", Profile{beyond: []string{"/w/a"}, Confinement: Confinement{Exec: []string{"/usr"}}}, beyond + ", and each call needs confirmation", true},
		{"it executes none", Profile{beyond: []string{"/w/a"}}, beyond, false},
		{"hard links", Profile{unnoted: []string{"/w/a"}, Confinement: Confinement{Exec: []string{"/usr"}}}, "it may see hard links of files in a", false},
	} {
		tt.profile.Workspace = "/w"
		plan := newPlan(&tt.profile, nil)
		plan.on[LayerMounts] = true
		report := plan.report(&launch.Details{})
		said := slices.ContainsFunc(report.Missing, func(g Gap) bool { return g.Unsearched && strings.HasSuffix(g.Reason, tt.want) })
		if said != (tt.want != "") || report.Unhidden() != tt.unhidden {
			t.Errorf("%s: Unhidden() = %v, missing %v; want %v and %q", tt.name, report.Unhidden(), report.Missing, tt.unhidden, tt.want)
		}
	}
}
