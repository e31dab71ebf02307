package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
)

func TestIssuers(t *testing.T) {
	cfg, err := load(t, `
locals {
  domain = "example.com"
}
auth {
  issuer "corp" {
    url          = "https://login.${local.domain}/realms/corp"
    audience     = "https://tools.example.com"
    user_claim   = "email"
    groups_claim = "teams"
    roles = {
      tool-approvers            = ["approver"]
      "CN=Tool Admins,OU=Staff" = ["admin", "approver"]
      "${local.domain}/agents"  = ["agent"]
    }
    scopes = ["openid", "groups"]
  }
  issuer "dev" {
    url      = "http://127.0.0.1:8080"
    audience = "tools"
  }
  token "bea" {
    sha256   = "5b1e0f7a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f"
    user     = "bea"
    roles    = ["approver"]
    approves = ["ada@corp", "ada@firm"]
  }
}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []oidc.Issuer{
		{
			Name: "corp", URL: "https://login.example.com/realms/corp", Audience: "https://tools.example.com", UserClaim: "email", GroupsClaim: "teams",
			Roles: map[string]auth.Roles{
				"tool-approvers": auth.Approver, "CN=Tool Admins,OU=Staff": auth.Approver | auth.Admin, "example.com/agents": auth.Agent,
			},
			Scopes: []string{"openid", "groups"},
		},
		{Name: "dev", URL: "http://127.0.0.1:8080", Audience: "tools", UserClaim: "sub", GroupsClaim: "groups"},
	}
	if diff := cmp.Diff(want, cfg.Issuers); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// Users of an issuer are not known before they come; the other name is probably a mistake.
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].Text, "ada@firm") {
		t.Errorf("warnings: %v, want one about ada@firm", cfg.Warnings)
	}
}
