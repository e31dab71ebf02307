package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMissingWithAnother: if a layer is missing because another is, its remedy is the other's. A
// user who requires the first layer must see that remedy.
func TestMissingWithAnother(t *testing.T) {
	mounts := Gap{Layer: LayerMounts, Reason: "refused", Remedy: "allow it"}
	plan := newPlan(&Profile{Confinement: Confinement{RunAs: RunAs{Mode: RunAsHost}, Isolation: Isolated}}, nil)
	plan.drop(mounts)
	want := []Gap{mounts, {Layer: LayerProc, Reason: "it needs the layer mounts", Remedy: "allow it"}}
	if diff := cmp.Diff(want, plan.missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// TestRequired: which unavailable layers prevent a program's start, and are marked if it is
// started all the same.
func TestRequired(t *testing.T) {
	host := RunAs{Mode: RunAsHost}
	landlock := Gap{Layer: LayerLandlock, Reason: "there is none", Remedy: "another kernel"}
	ipc := Gap{Layer: LayerIPCNS, Reason: "there is none"}
	for _, tt := range []struct {
		name string
		c    Confinement
		want []Gap
	}{
		{"auto requires nothing", Confinement{RunAs: host}, nil},
		{"auto requires what is named", Confinement{RunAs: host, Require: []Layer{LayerLandlock, LayerSeccomp}}, []Gap{landlock}},
		{"a level requires its layers", Confinement{RunAs: host, Isolation: Basic}, []Gap{landlock}},
		{"so does the next", Confinement{RunAs: host, Isolation: Isolated}, []Gap{ipc, landlock}},
		{
			"a layer that the level does not have, named twice",
			Confinement{RunAs: host, Isolation: Off, Require: []Layer{LayerMounts, LayerMounts}},
			[]Gap{{Layer: LayerMounts, Reason: `isolation = "off" does not have it`}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			known := map[Layer]Gap{LayerLandlock: landlock, LayerIPCNS: ipc}
			plan := newPlan(&Profile{Confinement: tt.c}, known)
			if diff := cmp.Diff(tt.want, plan.unmet()); diff != "" {
				t.Errorf("unmet() (-want +got):\n%s", diff)
			}
			missing, refused := errors.AsType[*MissingError](plan.check())
			if refused != (len(tt.want) > 0) || refused && (missing.Gap.Layer != tt.want[0].Layer || !strings.HasPrefix(missing.Gap.Reason, tt.want[0].Reason)) {
				t.Errorf("check() = %v, want the first of %v", plan.check(), tt.want)
			}
			tt.c.WarnOnMissing = true
			plan = newPlan(&Profile{Confinement: tt.c}, known)
			if err := plan.check(); err != nil {
				t.Errorf("check() = %v, want a start all the same", err)
			}
			var marked []Gap
			for _, gap := range plan.gaps() {
				if gap.Required {
					gap.Required = false
					marked = append(marked, gap)
				}
			}
			if diff := cmp.Diff(tt.want, marked); diff != "" {
				t.Errorf("marked as required (-want +got):\n%s", diff)
			}
		})
	}
}
