package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

type pluginSettings struct {
	Size  tool.ByteSize `json:"size,omitempty" jsonschema:"how large" default:"1MiB"`
	Wait  time.Duration `json:"wait,omitempty" jsonschema:"how long" default:"30s"`
	Hosts []string      `json:"hosts,omitempty" jsonschema:"which hosts"`
}

func TestConfigure(t *testing.T) {
	p := sdk.New("settings", "1.0.0")
	var got pluginSettings
	var config sdk.Config
	sdk.Configure(p, func(_ context.Context, cfg sdk.Config, s pluginSettings) error {
		got, config = s, cfg
		for _, host := range s.Hosts {
			sdk.AddTool(p, spec("ask_"+host), func(context.Context, *sdk.Call, struct{}) (string, error) { return host, nil })
		}
		return &sdk.SettingError{Path: []string{"hosts"}, Summary: "none is reachable", Warning: true}
	})
	with[struct{}](spec("always"))(p)

	for _, hosts := range [][]string{{"a", "b"}, {"c"}} {
		running := sdktest.Start(t, p, sdktest.Options{Settings: map[string]any{"hosts": hosts, "size": 7}})
		if diff := cmp.Diff(pluginSettings{Size: 7, Wait: 30 * time.Second, Hosts: hosts}, got); diff != "" {
			t.Errorf("settings (-want +got):\n%s", diff)
		}
		for _, directory := range []string{config.StateDir, config.ScratchDir} {
			if info, err := os.Stat(directory); err != nil || !info.IsDir() {
				t.Errorf("directory %q: %v, want one that exists", directory, err)
			}
		}
		if got, want := len(running.Tools()), 1+len(hosts); got != want {
			t.Errorf("with hosts %q there are %d tools, want %d", hosts, got, want)
		}
		if got := running.Call(t.Context(), "ask_"+hosts[0], nil).Text(); got != hosts[0] {
			t.Errorf("the added tool answers %q, want %q", got, hosts[0])
		}
		running.Close()
	}
}

// TestConfigureRefuses shows how wrong settings, and mistakes made in the
// function, keep the plugin from starting.
func TestConfigureRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		f    func(p *sdk.Plugin) error
		want []string
	}{
		{"a setting", func(*sdk.Plugin) error {
			return fmt.Errorf("limits: %w", &sdk.SettingError{Path: []string{"limits", "0"}, Summary: "too small"})
		}, []string{`settings ["limits" "0"]: limits: too small`}},
		{"two", func(*sdk.Plugin) error {
			return errors.Join(&sdk.SettingError{Path: []string{"a"}, Summary: "wrong"}, errors.New("no disk"))
		}, []string{`["a"]: wrong`, "no disk"}},
		{"a panic", func(*sdk.Plugin) error { panic("x") }, []string{"Configure panicked"}},
		{"a bad tool", func(p *sdk.Plugin) error {
			with[struct{}](spec("Bad"))(p)
			return nil
		}, []string{`tool "Bad": the name is not valid`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sdk.New("settings", "1.0.0")
			with[struct{}](spec("x"))(p)
			sdk.Configure(p, func(context.Context, sdk.Config, struct{}) error { return tt.f(p) })
			findings := fmt.Sprint(sdktest.Check(t.Context(), sdktest.InProcess(p), sdktest.Options{}))
			for _, want := range tt.want {
				if !strings.Contains(findings, want) {
					t.Errorf("findings = %s, want %q", findings, want)
				}
			}
		})
	}
}

func TestConfigureMistakes(t *testing.T) {
	p := sdk.New("settings", "1.0.0")
	sdk.Configure(p, func(context.Context, sdk.Config, struct {
		A string `json:"a"`
		B string `json:"b" jsonschema:"x" alias:"c"`
	},
	) error {
		return nil
	})
	sdk.Configure(p, func(context.Context, sdk.Config, string) error { return nil })
	for _, want := range []string{"settings: a: has no description", `settings: b: tag "alias"`, "the settings must be a struct"} {
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err() = %v, want %q", err, want)
		}
	}
}

// TestSecretAndAskUser shows the plugin's requests to the host.
func TestSecretAndAskUser(t *testing.T) {
	type answer struct {
		Branch string `json:"branch" jsonschema:"which one" enum:"main,dev"`
	}
	p := sdk.New("asks", "1.0.0")
	sdk.AddTool(p, spec("secret"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) { return c.Secret(ctx, "token") })
	sdk.AddTool(p, spec("other_secret"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) { return c.Secret(ctx, "other") })
	sdk.AddTool(p, spec("ask"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) {
		var a answer
		answered, err := c.AskUser(ctx, "Which branch?", &a)
		return fmt.Sprint(answered, " ", a.Branch), err
	})
	sdk.AddTool(p, spec("ask_wrongly"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) {
		_, err := c.AskUser(ctx, "Which branch?", answer{})
		return "", err
	})
	sdk.AddTool(p, spec("ask_nothing"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) {
		_, err := c.AskUser(ctx, " ", &answer{})
		return "", err
	})
	var asked string
	running := sdktest.Start(t, p, sdktest.Options{
		Secrets: map[string]string{"token": "s3cret"},
		Answer: func(question string, schema json.RawMessage) (any, bool) {
			asked = question + " " + string(schema)
			return answer{"dev"}, true
		},
	})
	for name, want := range map[string]string{"secret": "s3cret", "ask": "true dev"} {
		if got := running.Call(t.Context(), name, nil); got.Text() != want || got.Error != nil {
			t.Errorf("%s = %q (%v), want %q", name, got.Text(), got.Error, want)
		}
	}
	if !strings.Contains(asked, `Which branch? {"type":"object"`) || !strings.Contains(asked, `"enum":["main","dev"]`) {
		t.Errorf("the user was asked %s", asked)
	}
	for name, want := range map[string]tool.Code{"other_secret": tool.PermissionDenied, "ask_wrongly": tool.Internal, "ask_nothing": tool.Internal} {
		if got := running.Call(t.Context(), name, nil); got.Error == nil || got.Error.Code != want {
			t.Errorf("%s = %v, want code %q", name, got.Error, want)
		}
	}
}

func TestHTTPClient(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "proxied ", r.URL) }))
	defer proxy.Close()
	p := sdk.New("web", "1.0.0")
	with[struct{}](spec("x"))(p)
	sdktest.Start(t, p, sdktest.Options{Config: sdk.Config{Proxy: proxy.URL}})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://elsewhere.invalid/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.HTTPClient().Do(request)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	defer response.Body.Close()
	defer p.HTTPClient().CloseIdleConnections()
	body := make([]byte, 64)
	n, _ := response.Body.Read(body)
	if got, want := string(body[:n]), "proxied http://elsewhere.invalid/a"; got != want {
		t.Errorf("answer = %q, want %q", got, want)
	}
}
