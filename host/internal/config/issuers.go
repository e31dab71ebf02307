package config

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxAudience bounds an audience, in bytes.
	maxAudience = 512
	// maxClaim bounds the name of a claim or a scope, in bytes.
	maxClaim = 128
)

// issuers reads the issuer blocks.
func (d *decoder) issuers(blocks []authBlock) (all []oidc.Issuer) {
	names, urls := make(map[string]hcl.Range), make(map[string]hcl.Range)
	tokens := make(map[string]hcl.Range)
	for _, block := range blocks {
		for _, token := range block.Tokens {
			tokens[token.Name] = token.NameRange
		}
	}
	for _, block := range blocks {
		for _, of := range block.Issuers {
			d.unique("issuer", of.Name, of.NameRange, names)
			if !tool.ValidPluginName(of.Name) || of.Name == auth.LocalToken {
				d.mistake(of.NameRange, "Invalid issuer name",
					"%q cannot be an issuer's name, with which the names of its users end: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -, and not %q.", of.Name, auth.LocalToken)
			}
			if at, taken := tokens[of.Name]; taken {
				d.mistake(of.NameRange, "Name of a token", "The token at %s has this name, and the journal tells callers apart by it. Rename one of them.", diag.Place(at))
			}
			issuer := d.issuer(of)
			if first, taken := urls[issuer.URL]; taken && issuer.URL != "" {
				d.mistake(of.URL.Expr.Range(), "Duplicate issuer", "The issuer at %s has the same url, and a token does not say which of them is meant. Keep one.", diag.Place(first))
			}
			urls[issuer.URL] = of.NameRange
			all = append(all, issuer)
		}
	}
	return all
}

// issuer reads one issuer block.
func (d *decoder) issuer(block issuerBlock) oidc.Issuer {
	issuer := oidc.Issuer{
		Name:        block.Name,
		UserClaim:   d.claim(block.UserClaim, "sub"),
		GroupsClaim: d.claim(block.GroupsClaim, "groups"),
		Roles:       d.groupRoles(block.Roles),
	}
	if d.absent(block.URL) {
		d.mistake(block.Range, "Missing url", "Issuer %q needs its identifier, exactly as in iss of its tokens. Add url = \"https://...\".", block.Name)
	} else if s, ok := d.text(block.URL, "the URL of an issuer"); ok {
		if err := oidc.CheckURL(s); err != nil {
			d.mistake(block.URL.Expr.Range(), "Not an issuer", "Expected a URL such as \"https://login.example.com\", not %s: %v.", quote(block.URL.Expr, s), err)
		} else {
			issuer.URL = s
		}
	}
	if d.absent(block.Audience) {
		d.mistake(block.Range, "Missing audience", "Issuer %q needs an audience: without it, a token for any other service would be valid here. Add audience = \"https://...\", the address of this host, as in aud of its tokens.", block.Name)
	} else if s, ok := d.text(block.Audience, "an audience"); ok {
		if !isLabel(s, maxAudience) {
			d.mistake(block.Audience.Expr.Range(), "Invalid audience", "Expected 1 to %d bytes of visible characters, without space around them.", maxAudience)
		}
		issuer.Audience = s
	}
	if issuer.UserClaim == issuer.GroupsClaim {
		d.mistake(cmp.Or(block.UserClaim, block.GroupsClaim).Expr.Range(), "One claim for two things", "The same claim cannot name the user and the groups. Change user_claim or groups_claim.")
	}
	for _, w := range d.words(block.Scopes, `a list of scopes such as ["openid", "groups"]`) {
		if !validScope(w.text) {
			d.mistake(w.expr.Range(), "Not a scope", "Expected 1 to %d characters of ASCII without spaces and quotes, not %s.", maxClaim, quote(w.expr, w.text))
			continue
		}
		issuer.Scopes = d.addTo(issuer.Scopes, w.text, w)
	}
	return issuer
}

// validScope reports whether a text is a scope (RFC 6749, section 3.3).
func validScope(text string) bool {
	return text != "" && len(text) <= maxClaim && !slices.ContainsFunc([]byte(text), func(c byte) bool {
		return c <= ' ' || c > '~' || c == '"' || c == '\\'
	})
}

// claim reads the name of a claim.
func (d *decoder) claim(attr *hcl.Attribute, byDefault string) string {
	s, ok := d.text(attr, "the name of a claim")
	if !ok {
		return byDefault
	}
	if !isLabel(s, maxClaim) {
		d.mistake(attr.Expr.Range(), "Invalid claim", "Expected the name of a claim, 1 to %d bytes of visible characters.", maxClaim)
	}
	return s
}

const groupRolesExpected = `the roles of groups, such as { tool-approvers = ["approver"] }`

// groupRoles reads the roles of the members of groups.
func (d *decoder) groupRoles(attr *hcl.Attribute) map[string]auth.Roles {
	if d.absent(attr) {
		return nil
	}
	pairs, diags := hcl.ExprMap(attr.Expr)
	if diags.HasErrors() {
		d.mistake(attr.Expr.Range(), "Wrong type", "Expected %s.", groupRolesExpected)
		return nil
	}
	all := make(map[string]auth.Roles)
	for _, pair := range pairs {
		group, ok := d.text(&hcl.Attribute{Name: attr.Name, Expr: pair.Key}, groupRolesExpected)
		switch _, taken := all[group]; {
		case !ok:
			continue
		case !auth.ValidGroup(group):
			d.mistake(pair.Key.Range(), "Invalid group", "Expected the name of a group of the issuer, 1 to %d bytes of visible characters.", auth.MaxGroup)
			continue
		case taken:
			d.mistake(pair.Key.Range(), "Duplicate group", "This group is already there. Write all its roles into one list.")
			continue
		}
		all[group] = d.listedRoles(&hcl.Attribute{Name: attr.Name, Expr: pair.Value}, "Give another group the other role")
	}
	return all
}

// ofIssuer reports whether a name can be one of a user of an issuer.
func (d *decoder) ofIssuer(user string) bool {
	return slices.ContainsFunc(d.logins, func(issuer oidc.Issuer) bool { return issuer.Has(user) })
}
