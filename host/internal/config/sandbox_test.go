package config_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSandboxOfPlugin: which block sets a plugin's limits.
func TestSandboxOfPlugin(t *testing.T) {
	const (
		defaults = "sandbox \"default\" {\n limits {\n memory = \"300MiB\"\n }\n env {\n pass = [\"TZ\"]\n }\n}\n"
		wide     = "sandbox \"wide\" {\n limits {\n memory = \"1GiB\"\n }\n}\n"
	)
	for _, tt := range []struct {
		name, blocks, plugin string
		memory               tool.ByteSize
		files                uint64
		env                  []string
	}{
		{"built-in", "", "", 512 * tool.MiB, 256, nil},
		{"the block named default", defaults, "", 300 * tool.MiB, 256, []string{"TZ"}},
		{"by name", defaults + wide, `sandbox = "wide"`, tool.GiB, 256, nil},
		{"default by name, without a block", "", `sandbox = "default"`, 512 * tool.MiB, 256, nil},
		{
			"inline over the default", defaults, "sandbox {\n limits {\n open_files = 64\n }\n}",
			300 * tool.MiB, 64,
			[]string{"TZ"},
		},
		{
			"inline environment replaces", defaults, "sandbox {\n env {\n pass = []\n }\n}",
			300 * tool.MiB, 256, nil,
		},
		{"no limit", "", "sandbox {\n limits {\n memory = \"unlimited\"\n open_files = \"unlimited\"\n }\n}", 0, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{
				"config.hcl": "workspace = \".\"\n" + tt.blocks + "plugin \"p\" {\n tier = \"read_only\"\n" + tt.plugin + "\n}\n",
			})
			cfg, err := config.Load(dir, config.LoadOptions{LookupEnv: environment(nil)})
			if err != nil {
				t.Fatal(err)
			}
			p := cfg.Plugins[0].Supervisor
			if p.Limits.Memory != tt.memory || p.Limits.OpenFiles != tt.files || !slices.Equal(p.PassEnv, tt.env) {
				t.Errorf("memory %v, open files %d, environment %q, want %v, %d, %q",
					p.Limits.Memory, p.Limits.OpenFiles, p.PassEnv, tt.memory, tt.files, tt.env)
			}
		})
	}
}

// TestSettingsSchemaIsAskedOf: a plugin with a mistake in its program or sandbox, or a disabled
// one, must not be started for its schema.
func TestSettingsSchemaIsAskedOf(t *testing.T) {
	dir := write(t, map[string]string{"config.hcl": `
		sandbox "wrong" {
			limits {
				memory = "1MiB"
			}
		}
		sandbox "open" {
			filesystem {
				read = ["/"]
			}
		}
		plugin "fine" {
			tier = "read_only"
		}
		plugin "disabled" {
			tier    = "read_only"
			enabled = false
		}
		plugin "without-tier" {
		}
		plugin "with-a-wrong-pin" {
			tier   = "read_only"
			sha256 = "abc"
		}
		plugin "without-a-program" {
			tier = "read_only"
			path = "../elsewhere"
		}
		plugin "in-a-wrong-sandbox" {
			tier    = "read_only"
			sandbox = "wrong"
		}
		plugin "in-a-sandbox-that-gives-the-state-away" {
			tier    = "read_only"
			sandbox = "open"
		}
		plugin "in-its-own-that-gives-the-host-away" {
			tier = "read_only"
			sandbox {
				filesystem {
					write = ["/opt"]
				}
			}
		}
		plugin "in-its-own" {
			tier = "read_only"
			path = "/opt/program"
			sandbox {
				filesystem {
					exec = ["system"]
				}
			}
		}
		plugin "with-a-wrong-expression" {
			tier = "read_only"
			config {
				mode = local.unknown
			}
		}`})
	var asked []string
	_, err := config.Load(dir, config.LoadOptions{
		LookupEnv: environment(nil),
		SettingsSchema: func(_ string, p supervisor.Plugin) ([]byte, bool) {
			asked = append(asked, p.Name)
			return nil, false
		},
	})
	if err == nil {
		t.Error("Load succeeded")
	}
	if diff := cmp.Diff([]string{"fine", "without-tier", "in-its-own", "with-a-wrong-expression"}, asked); diff != "" {
		t.Errorf("asked for the schema of (-want +got):\n%s", diff)
	}
}
