package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mistaken is a small configuration with one mistake, in the line with the mark §.
type mistaken struct {
	text string
	// wrong and write are parts of the message: what is wrong, and what to write.
	wrong, write string
	// accept is the word that silences the warning; "" means that it is a mistake.
	accept string
	// start means that a plugin is started first, since its tools depend on the mistake.
	start bool
}

// comments marks warnings about the comments themselves, which nothing silences.
const comments = "?"

// within puts lines into blocks, the outermost first.
func within(lines string, blocks ...string) string {
	for _, block := range slices.Backward(blocks) {
		lines = block + " {\n" + lines + "\n}\n"
	}
	return lines
}

const (
	trustedFS = "plugin \"fs\" {\ntier = \"privileged\"\nclaims = \"trust\"\n"
	aHash     = "5b1e0f7a9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f"
)

// fs is a configuration with the plugin fs and further lines in its block.
func fsWith(lines string) string { return trustedFS + lines + "\n}\n" }

// aRule is a configuration with a rule about the tools of fs.
func aRule(lines string) string { return fsWith("") + within(lines, "policy", `rule "r"`) }

// ruleWhen is a configuration with a condition.
func ruleWhen(condition string) string {
	return aRule("tools = [\"*\"]\nverdict = \"deny\"\nwhen = " + condition + " §")
}

// aToken is a configuration with a token and further lines in its block.
func aToken(lines string) string {
	return within("sha256 = \""+aHash+"\"\nuser = \"ada\"\nroles = [\"approver\"]\n"+lines, "auth", `token "t"`)
}

func inCommands(lines string) string { return within(lines, "policy", "commands") }
func inPaths(lines string) string    { return within(lines, "policy", "paths") }
func inSandbox(lines string) string {
	return within(lines, `plugin "fs"`+" {\ntier = \"privileged\"\nclaims = \"trust\"\nsandbox") + "}\n"
}
func inFiles(lines string) string { return inSandbox(within(lines, "filesystem")) }

// foundMistakes are mistakes that earlier versions accepted without a word, or told badly.
var foundMistakes = map[string]mistaken{
	"tool block of no tool":             {fsWith("tool \"delete_fil\" { §\napproval = \"deny\"\n}"), `has no tool "delete_fil"`, `did you mean "delete_file"?`, "", false},
	"rule of no tool":                   {aRule("tools = [\"delete_fil\"] §\nverdict = \"deny\""), `there is no tool "delete_fil"`, `did you mean "delete_file"?`, "", false},
	"tier that leaves out tools":        {"plugin \"fs\" {\ntier = \"read_only\" §\nclaims = \"trust\"\n}", "leaves out tools of a higher tier: write_file,", "Raise it", "tier", false},
	"approves nobody":                   {aToken(`approves = ["redd"] §`), `"redd" is neither the user of a token nor local_user`, "", "user", false},
	"a user who is nobody":              {ruleWhen(`caller.user == "rde"`), `"rde" is neither the user of a token nor local_user`, "", "user", false},
	"user compared with a number":       {ruleWhen(`caller.user == 5`), "a string never equals a number", `Write "5"`, "", false},
	"misspelt tier in a condition":      {ruleWhen(`tool.tier == "readonly"`), `tool.tier is never "readonly"`, `Did you mean "read_only"?`, "", false},
	"sum of a user":                     {ruleWhen(`caller.user + 1 > 2`), "caller.user is a string", "a number", "", false},
	"web without a network":             {"plugin \"web\" { §\ntier = \"privileged\"\nclaims = \"trust\"\n}", "none of the tools of plugin \"web\" is available", `network { mode = "proxy" }`, "unavailable", true},
	"misspelt program":                  {inFiles(`exec = ["/usr/bin/gti"] §`), `"/usr/bin/gti" does not exist`, `Did you mean "git"?`, "missing", false},
	"unused sandbox":                    {"sandbox \"defalt\" { §\nisolation = \"strict\"\n}\n" + fsWith(""), `no plugin uses sandbox "defalt"`, `Did you mean "default"?`, "unused", false},
	"setting of a plugin out of bounds": {"plugin \"shell\" {\ntier = \"privileged\"\nclaims = \"trust\"\nconfig {\nmax_jobs = -1 §\n}\n}", "max_jobs", "at least", "", false},
	"alias that is a tool":              {fsWith("tool \"read_file\" {\naliases = [\"write_file\"] §\n}"), `"write_file" cannot be an alias`, "choose another one", "", false},
	"assign PATH":                       {inCommands(`assign = ["PATH"] §`), `with "PATH" a command chooses what its program runs`, "Remove it", "assign", false},
	"assign a variable of git":          {inCommands(`assign = ["GIT_EXTERNAL_DIFF"] §`), "always needs approval", `Remove "GIT_EXTERNAL_DIFF"`, "", false},
	"assign LD_PRELOAD":                 {inCommands(`assign = ["LD_PRELOAD"] §`), `with "LD_PRELOAD" a command chooses`, "Remove it", "assign", false},
	"allow bash":                        {inCommands(`allow = ["bash *"] §`), `"bash *" lets nearly any command run`, "List the commands that you need", "allow", false},
	"allow xargs":                       {inCommands(`allow = ["xargs *"] §`), `"xargs *" lets nearly any command run`, "List the commands", "allow", false},
	"allow sudo":                        {inCommands(`allow = ["sudo *"] §`), `"sudo *" lets nearly any command run`, "List the commands", "allow", false},
	"high risk allowed":                 {inCommands("risk {\nhigh = \"allow\" §\n}"), "may remove, execute or send anything unasked", `Write high = "confirm"`, "risk", false},
	"redirect to Makefile":              {inCommands(`write_redirects = ["Makefile"] §`), `commands write "Makefile" unasked`, "Remove it", "redirect", false},
	"redirect to .git/config":           {inCommands(`write_redirects = [".git/config"] §`), `programs run its content`, "Remove it", "redirect", false},
	"redirect to crontab":               {inCommands(`write_redirects = ["/etc/crontab"] §`), `it is not in the workspace`, "Name a file in the workspace", "redirect", false},
	"forbidden with a shell variable":   {inPaths(`forbidden = ["$HOME/.ssh"] §`), "Shell variables are not expanded", `pathexpand("~/...")`, "", false},
	"forbidden at the top":              {inPaths(`forbidden = [".env"] §`), `".env" covers only the top of the workspace`, `Begin it with "**/"`, "pattern", false},
	"forbidden extension at the top":    {inPaths(`forbidden = ["*.pem"] §`), `"*.pem" covers only the top`, `Begin it with "**/"`, "pattern", false},
	"forbidden outside":                 {inPaths(`forbidden = ["../secrets"] §`), "leads out of the workspace", "Write an absolute path", "pattern", false},
	"deny an option":                    {inCommands(`deny = ["rm -rf"] §`), `"rm -rf" does not cover`, `Deny "rm" without options`, "deny", false},
	"elicitation of everybody":          {within(`elicitation_from = ["*"] §`, "approvals"), "a name gives no rights", "elicitation = true in the block of the client's own token", "", false},
	"hash of nothing":                   {within("sha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\" §\nuser = \"ada\"\nroles = [\"approver\", \"admin\"]", "auth", `token "t"`), "empty secret", "toolhost token new", "", false},
	"write /etc":                        {inFiles(`write = ["/etc"] §`), `"/etc" belongs to the system`, "Name a directory for the plugin alone", "system", false},
	"write what is executed":            {inFiles("exec = [\"system\"]\nwrite = [\"/usr/lib\"] §"), `"/usr/lib" belongs to the system`, "Name a directory", "system", false},
	"docker socket":                     {inFiles(`write = ["/var/run/docker.sock"] §`), "socket of a container engine", "Remove it", "socket", false},
	"docker socket to read":             {inFiles(`read = ["/run/docker.sock"] §`), "socket of a container engine", "Remove it", "socket", false},
	"workspace of the system":           {"workspace = \"/etc\" §\n", "/etc belongs to the system", "Name the directory of a project", "workspace", false},
	"home that tools write":             {"workspace = \"/root\" §\n" + fsWith(""), "Home directory as workspace", "Name the directory of a project", "", false},
	"workspace of root":                 {"workspace = \"/root\" §\n", "home directory", "Name the directory of a project", "workspace", false},
	"no sandbox with programs":          {inSandbox("isolation = \"off\" §\nfilesystem {\nexec = [\"system\"]\n}"), "does not enforce filesystem and network", `Write "auto"`, "isolation", false},
	"nothing protected":                 {inFiles(`protect = [] §`), "protect is empty", "Remove it for the default", "protect", false},
	"pass LD_PRELOAD":                   {inSandbox("env {\npass = [\"LD_PRELOAD\"] §\n}"), `"LD_PRELOAD" makes programs, including the plugin, load or run other code`, "Remove it", "env", false},
	"pass a secret":                     {inSandbox("env {\npass = [\"AWS_SECRET_ACCESS_KEY\"] §\n}"), `usually holds a secret`, "secret block", "secret", false},
	"journal too small for its time":    {within("keep = \"365d\"\nmax_size = \"16MiB\" §", "journal"), "max_size removes rows long before keep", "Raise max_size", "journal", false},
	"missing quotes":                    {within("mode = supervised §", "policy"), "Write a text in quotes", `"supervised"`, "", false},
	"misspelt plugin":                   {"plugin \"memroy\" { §\ntier = \"read_only\"\n}", "there is no", "memory", "", false},
	"plugin without a name":             {"plugin { §\ntier = \"read_only\"\n}", "A plugin block needs a name", `plugin "name" {`, "", false},
	"unknown function in a condition":   {ruleWhen(`qqqqq(1)`), "A condition cannot call qqqqq", "There are alltrue, anytrue,", "", false},
}

// ownMistakes are slips of the pen and of the mind.
var ownMistakes = map[string]mistaken{
	"misspelt block":                  {within("mode = \"supervised\"", "polcy §"), "", `Did you mean "policy"?`, "", false},
	"misspelt argument":               {fsWith("tool \"write_file\" {\napprovel = \"deny\" §\n}"), `"approvel" is not expected here`, `Did you mean "approval"?`, "", false},
	"misspelt tier":                   {"plugin \"fs\" {\ntier = \"readonly\" §\n}", `not "readonly"`, `Did you mean "read_only"?`, "", false},
	"misspelt mode":                   {within("mode = \"autonomus\" §", "policy"), `not "autonomus"`, `Did you mean "autonomous"?`, "", false},
	"misspelt verdict":                {aRule("tools = [\"*\"]\nverdict = \"denny\" §"), `not "denny"`, `Did you mean "deny"?`, "", false},
	"misspelt isolation":              {inSandbox(`isolation = "stric" §`), `not "stric"`, `Did you mean "strict"?`, "", false},
	"misspelt layer":                  {inSandbox(`require = ["landlok"] §`), `not "landlok"`, `Did you mean "landlock"?`, "", false},
	"misspelt word of exec":           {inFiles(`exec = ["systm"] §`), `not "systm"`, `Did you mean "system"?`, "", false},
	"misspelt role":                   {within("sha256 = \""+aHash+"\"\nuser = \"ada\"\nroles = [\"aprover\"] §", "auth", `token "t"`), "aprover", `"approver"`, "", false},
	"misspelt sandbox":                {fsWith("sandbox = \"defalt\" §"), `no sandbox block named "defalt"`, `Did you mean "default"?`, "", false},
	"misspelt secret":                 {"secret \"brave\" {\nvalue = \"x\"\n}\n" + fsWith("secrets = [\"brve\", \"brave\"] §"), `no secret block "brve"`, `Did you mean "brave"?`, "", false},
	"misspelt setting":                {fsWith("config {\nmax_raed = \"1MiB\" §\n}"), `no setting "max_raed"`, `Did you mean "max_read"?`, "", false},
	"misspelt local":                  {"locals {\nsmall = \"1s\"\n}\n" + fsWith("idle_timeout = local.smal §"), `no local named "smal"`, `Did you mean "small"?`, "", false},
	"misspelt function":               {within("a = lengh([1]) §", "locals"), `no function named "lengh"`, `Did you mean "length"?`, "", false},
	"misspelt argument of a tool":     {aRule("tools = [\"write_file\"]\nverdict = \"deny\"\nwhen = args.pth == \"x\" §"), `none of its tools has an argument "pth"`, `did you mean "path"?`, "", false},
	"misspelt risk in a condition":    {ruleWhen(`anytrue([for c in commands : c.risk == "hihg"])`), `c.risk is never "hihg"`, `Did you mean "high"?`, "", false},
	"misspelt plugin in a condition":  {ruleWhen(`tool.plugin == "fss"`), `tool.plugin is never "fss"`, `Did you mean "fs"?`, "", false},
	"misspelt tool in a condition":    {ruleWhen(`contains(["write_fil"], tool.name)`), `no tool "write_fil"`, `did you mean "write_file"?`, "", false},
	"misspelt role in a condition":    {ruleWhen(`contains(caller.roles, "agnet")`), `caller.roles is never "agnet"`, `Did you mean "agent"?`, "", false},
	"misspelt part of the call":       {ruleWhen(`caller.usr == "x"`), `not "usr"`, `Did you mean "user"?`, "", false},
	"misspelt tool in a toolset":      {fsWith("") + within(`tools = ["raed_*", "read_file"] §`, `toolset "few"`), `toolset "few": there is no tool "raed_*"`, "", "", false},
	"misspelt toolset":                {within("tools = [\"call_wait\"]", `toolset "few"`) + within("sha256 = \""+aHash+"\"\nuser = \"ada\"\nroles = [\"agent\"]\ntoolset = \"fwe\" §", "auth", `token "t"`), `no block toolset "fwe"`, `Did you mean "few"?`, "", false},
	"misspelt accepted word":          {inCommands(`deny = ["rm"] # accept: deni §`), `no warning has the word "deni"`, `Did you mean "deny"?`, comments, false},
	"accepted without a warning":      {inCommands(`deny = ["rm"] # accept: deny §`), `no warning "deny" about this line`, "Remove the word", comments, false},
	"duration without a unit":         {fsWith("idle_timeout = 10 §"), "not a number", `a duration such as "10s"`, "", false},
	"duration with a space":           {fsWith("idle_timeout = \"10 s\" §"), `not "10 s"`, `a duration such as "10s"`, "", false},
	"size of another kind":            {inSandbox("limits {\nmemory = \"512MB\" §\n}"), `not "512MB"`, "MiB", "", false},
	"rate of another kind":            {fsWith("tool \"write_file\" {\nrate = \"30/min\" §\n}"), `not "30/min"`, `"30/m"`, "", false},
	"too much caching":                {fsWith("tool \"read_file\" {\ncache_ttl = \"2h\" §\n}"), `not "2h"`, `to "1h"`, "", false},
	"journal for an hour":             {within(`keep = "12h" §`, "journal"), `not "12h"`, "at least a day", "", false},
	"text for a flag":                 {fsWith("enabled = \"yes\" §"), "not a string", "true or false", "", false},
	"text for a list":                 {aRule("tools = \"write_*\" §\nverdict = \"deny\""), "not a string", `a list of tools`, "", false},
	"single quotes":                   {within("mode = 'supervised' §", "policy"), "Single quotes are not valid", "double quotes", "", false},
	"closing quotes":                  {"plugin \"fs\" {\ntier = \"read_only §\n}", "A text ends in its line", "Add the closing quotes", "", false},
	"variable of the shell":           {within("a = \"${HOME}/x\" §", "locals"), `HOME`, `${env("HOME")}`, "", false},
	"env without quotes":              {within("a = env(HOME) §", "locals"), "Write a text in quotes", `"HOME"`, "", false},
	"colon for equals":                {within("mode : \"supervised\" §", "policy"), "", "equals sign", "", false},
	"commands outside of policy":      {within("allow = [\"ls\"]", "commands §"), `"commands"`, "It belongs in a policy block", "", false},
	"rule outside of policy":          {within("tools = [\"*\"]", `rule "r" §`), `"rule"`, "It belongs in a policy block", "", false},
	"tool outside of a plugin":        {within("enabled = false", `tool "write_file" §`), `"tool"`, "It belongs in a plugin block", "", false},
	"network outside of a sandbox":    {fsWith("network {§\nmode = \"host\"\n}"), `"network"`, "It belongs in a ", "", false},
	"mode outside of policy":          {"mode = \"supervised\" §", `"mode" is not expected here`, "It belongs in a ", "", false},
	"two names":                       {within("tier = \"read_only\"", `plugin "fs" "files" §`), "A plugin block has one name", "Remove this one", "", false},
	"a name too many":                 {within("mode = \"supervised\"", `policy "strict" §`), "No labels are expected for policy", "", "", false},
	"rule without a name":             {within("tools = [\"*\"]\nverdict = \"deny\"", "policy", "rule §"), "A rule block needs a name", `rule "name" {`, "", false},
	"two blocks":                      {"server {\nlisten = \"\"\n}\nserver { §\ngrace = \"1s\"\n}", "Another server block is at", "Put everything into one", "", false},
	"two plugins of one name":         {fsWith("") + "plugin \"fs\" { §\ntier = \"read_only\"\n}", `Another plugin "fs"`, "its own name", "", false},
	"two arguments":                   {within("mode = \"supervised\"\nmode = \"read_only\" §", "policy"), "", "once", "", false},
	"block in a line":                 {"plugin \"fs\" { sandbox { isolation = \"auto\" } } §", "", "on its own line", "", false},
	"rule after one for all":          {fsWith("") + "policy {\nrule \"all\" {\ntools = [\"*\"]\nverdict = \"deny\"\n}\nrule \"one\" { §\ntools = [\"read_file\"]\nverdict = \"ask\"\n}\n}", `This rule never decides: rule "all"`, "Remove one of them", "", false},
	"condition that never holds":      {ruleWhen(`false`), "always false", "Remove the rule", "", false},
	"condition on a folder":           {ruleWhen(`anytrue([for p in paths : under(p.path, "docs")])`), "p.path is absolute", `under(p.rel, "docs")`, "", false},
	"list compared with a text":       {ruleWhen(`caller.roles == "agent"`), "a list never equals a string", "contains(caller.roles", "", false},
	"port compared with a number":     {ruleWhen(`anytrue([for u in urls : u.port == 443])`), "a string never equals a number", `Write "443"`, "", false},
	"command allowed and denied":      {inCommands("allow = [\"rm -r\"] §\ndeny = [\"rm\"]"), "denies every command that this entry would allow", "Remove one of them", "", false},
	"tilde in a pattern":              {inPaths(`forbidden = ["~/.ssh"] §`), "~ has no meaning", "pathexpand", "", false},
	"listening to all":                {within(`listen = "0.0.0.0:7780" §`, "server"), "Other machines could reach", "127.0.0.1", "", false},
	"port out of range":               {within(`listen = "127.0.0.1:99999" §`, "server"), `not "99999"`, "from 0 to 65535", "", false},
	"token itself":                    {within("sha256 = \"th_abc\" §\nuser = \"ada\"\nroles = [\"agent\"]", "auth", `token "t"`), "This is the token itself", "toolhost token new", "", false},
	"agent that approves":             {within("sha256 = \""+aHash+"\"\nuser = \"ada\"\nroles = [\"agent\", \"approver\"] §", "auth", `token "t"`), "", "", "", false},
	"approval above the tier":         {"plugin \"fs\" {\ntier = \"read_only\" # accept: tier\nclaims = \"trust\"\napproval {\nprivileged = \"deny\" §\n}\n}", "none of its calls has this tier", "Raise the plugin's tier", "", false},
	"secret of nobody":                {"secret \"brave\" { §\nvalue = \"x\"\n}\n" + fsWith(""), `no plugin may request secret "brave"`, "List it in secrets", "unused", false},
	"two plugins with the same tools": {fsWith("") + "plugin \"files\" { §\npath = \"fs\"\ntier = \"privileged\"\nclaims = \"trust\"\n}", `tools of plugin "files" are left out`, "Disable the tools", "taken", true},
}

// TestMistakesAreTold checks each mistake alone with `toolhost validate`: file, line, what is
// wrong and what to write. A word in a comment silences what is a warning.
func TestMistakesAreTold(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	for _, table := range []map[string]mistaken{foundMistakes, ownMistakes} {
		for name, m := range table {
			t.Run(name, func(t *testing.T) {
				before, after, marked := strings.Cut(m.text, "§")
				if !marked {
					t.Fatal("no line has a mark")
				}
				head := fmt.Sprintf("state_dir = \"state\"\nplugin_dir = %q\n", filepath.Join(bin, "plugins"))
				if !strings.Contains(m.text, "workspace = ") {
					head += "workspace = \"ws\"\n"
				}
				place := fmt.Sprintf("config.hcl:%d: ", strings.Count(head+before, "\n")+1)
				if m.start {
					writeAndStart(t, dir, head+before+after)
				}
				said := validateText(t, dir, head+before+after)
				i := slices.IndexFunc(said.all(), func(line string) bool {
					return strings.HasPrefix(line, place) && strings.Contains(line, m.wrong) && strings.Contains(line, m.write)
				})
				if i < 0 {
					t.Fatalf("not told in %s with %q and %q:\n%s", place, m.wrong, m.write, strings.Join(said.all(), "\n"))
				}
				if isWarning := i >= len(said.mistakes); isWarning != (m.accept != "") {
					t.Errorf("a warning: %v; it is\n%s", isWarning, said.all()[i])
				}
				if len(said.all()) != 1 {
					t.Errorf("more is told:\n%s", strings.Join(said.all(), "\n"))
				}
				if m.accept == "" || m.accept == comments {
					return
				}
				if said = validateText(t, dir, head+before+" # accept: "+m.accept+after); len(said.all()) > 0 {
					t.Errorf("with # accept: %s, it says\n%s", m.accept, strings.Join(said.all(), "\n"))
				}
			})
		}
	}
}

// TestToolsThatAreLeftOutExist: names of tools that are disabled or above the tier, and of the
// tools of a disabled plugin, are no mistakes, so that either can be changed alone.
func TestToolsThatAreLeftOutExist(t *testing.T) {
	t.Parallel()
	dir := seededDir(t)
	const rest = `
toolset "some" { tools = ["git_*", "write_file", "delete_file"] }
policy {
  rule "no" {
    tools   = ["git_commit", "write_file", "delete_file"]
    verdict = "deny"
  }
}
plugin "git" {
  tier    = "privileged"
  claims  = "trust"
  %s
}
plugin "fs" {
  tier   = %q
  claims = "trust"
  tool "delete_file" { enabled = false }
}
`
	head := fmt.Sprintf("workspace = \"ws\"\nstate_dir = \"state\"\nplugin_dir = %q\n", filepath.Join(bin, "plugins"))
	writeAndStart(t, dir, head+fmt.Sprintf(rest, "", "privileged"))
	for _, change := range [][]any{{"enabled = false", "privileged"}, {"", "read_only"}} {
		if said := validateText(t, dir, head+fmt.Sprintf(rest, change...)); len(said.mistakes) > 0 {
			t.Errorf("with %q it says\n%s", change, strings.Join(said.mistakes, "\n"))
		}
	}
	wrong := strings.Replace(fmt.Sprintf(rest, "enabled = false", "privileged"), "git_commit", "git_comit", 1)
	if said := validateText(t, dir, head+wrong); len(said.mistakes) != 1 || !strings.Contains(said.mistakes[0], `"git_commit"`) {
		t.Errorf("a misspelt tool of a disabled plugin: %q, want one mistake with the right name", said.mistakes)
	}
}

// seededDir returns the directory of a configuration, with a workspace and what is known of the
// shipped plugins.
func seededDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := seed(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// writeAndStart runs the program, which starts the plugins that are not known.
func writeAndStart(t *testing.T, dir, text string) {
	t.Helper()
	path := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := toolhost(t.Context(), path, "validate", "--start").Output(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// findings are what validate says about a configuration: each text begins with its place.
type findings struct{ mistakes, warnings []string }

func (f findings) all() []string { return slices.Concat(f.mistakes, f.warnings) }

// validateText runs `toolhost validate` in this process.
func validateText(t *testing.T, dir, text string) findings {
	t.Helper()
	path := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	a := &app{stdout: &out, stderr: &errors}
	a.run(context.Background(), []string{"validate", "--no-start", "--json", "--config", path})
	var v validation
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s%s", err, out.Bytes(), errors.Bytes())
	}
	var all findings
	for _, m := range v.Mistakes {
		all.mistakes = append(all.mistakes, fmt.Sprintf("config.hcl:%d: %s: %s", m.Line, m.Summary, m.Detail))
	}
	for _, problem := range v.Problems {
		all.mistakes = append(all.mistakes, strings.ReplaceAll(problem, path, "config.hcl"))
	}
	for _, warning := range v.Warnings {
		all.warnings = append(all.warnings, strings.ReplaceAll(warning, path, "config.hcl"))
	}
	return all
}
