package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// complaint is an error message of git, with advice for the model.
type complaint struct {
	pattern *regexp.Regexp
	code    tool.Code
	// message replaces git's words; if it is empty, the model sees git's words. In
	// message and hint, $1 and $2 are the groups of the pattern, and $path is the first
	// group as a path relative to the workspace.
	message, hint string
}

// own is a complaint in git's own words.
func own(pattern string, code tool.Code, hint string) complaint {
	return complaint{pattern: regexp.MustCompile(pattern), code: code, hint: hint}
}

// said is a complaint in other words: git's are unclear, or contain paths that are not
// relative to the workspace.
func said(pattern string, code tool.Code, message, hint string) complaint {
	return complaint{pattern: regexp.MustCompile(pattern), code: code, message: message, hint: hint}
}

// complaints are tried in order; the first match applies.
var complaints = []complaint{
	// These contain file names, which could match any of the others.
	own(`(?m)^error: The following untracked working tree files would be (?:overwritten|removed) by `, tool.Conflict, "commit, move or delete these files first"),
	own(`(?m)^error: Your local changes to the following files would be overwritten`, tool.Conflict, "commit, stash or restore these files first"),
	said(`(?m)^error: Entry '(.*)' (?:would be overwritten by|not uptodate\. Cannot)`, tool.Conflict, "Uncommitted changes would be overwritten: $path", "commit, stash or restore them first; git_status lists them"),
	said(`(?m)^error: pathspec '(.*)' did not match`, tool.NotFound, "No tracked file matches $path", "find existing files with git_status and search_files"),
	said(`(?m)^fatal: no such path '([^\n]*)' in HEAD$`, tool.NotFound, "There is no $path in that commit", "name another path or commit"),
	said(`(?m)^fatal: no such path ([^\n]*) in [^ \n]+$`, tool.NotFound, "There is no $path in that commit", "name another path or commit"),
	said(`(?m)^fatal: file (.*) has only (\d+) lines?`, tool.InvalidArgument, "The file has only $2 lines", "use line numbers that exist"),
	said(`(?m)^(?:fatal: )?error processing config|^(?:fatal|warning): unable to access '[^']*': Permission denied`, tool.PermissionDenied,
		"The git repository cannot be used: its configuration includes a file outside the repository", "the user can remove the include from .git/config"),
	own(`Unable to create '[^']*?([^/']+\.lock)': File exists`, tool.Conflict, lockedHint),
	own(`(?m)^(?:fatal|error): (?:[^\n]*: )?cannot lock ref '[^\n]*': '[^\n]*' exists; cannot create`, tool.Conflict, "use another name; git_fetch with prune removes references that the remote deleted"),
	own(`(?m)^(?:fatal|error): (?:[^\n]*: )?cannot lock ref '[^\n]*': (?:is at|reference |unable to resolve)`, tool.Conflict, "another process changed or locked the reference; check its state and repeat the call"),
	said(`(?m)^fatal: not a git repository`, tool.NotFound, "Not a git repository", "its git directory is damaged or incomplete"),
	own(`(?m)^(?:Author|Committer) identity unknown|^fatal: (?:empty ident name|unable to auto-detect email|no (?:email|name) was given)`, tool.Failed, identityHint),
	said(`you need to resolve your current index first|unmerged files|needs merge|Committing is not possible|cannot (?:create|save).*unmerged`, tool.Conflict,
		"There are unresolved conflicts", "edit the files that git_status lists as conflicts, then git_add them"),
	said(`Not possible to fast-forward|Diverging branches can't be fast-forwarded`, tool.Conflict, "The branch and its upstream both have new commits", "repeat the call with mode merge or rebase"),
	own(`refusing to merge unrelated histories`, tool.Conflict, "check that the remote and the branch are the right ones"),
	said(`(?m)\[rejected\].*\((?:fetch first|non-fast-forward)\)$|^(?:hint: )?Updates were rejected`, tool.Conflict, "The remote rejected the push: it has commits that the branch lacks", "git_pull first, then push again"),
	said(`\[(?:remote )?rejected\].*\(stale info\)`, tool.Conflict, "The remote rejected the push: its branch changed since the last fetch", "git_fetch, and check the new commits"),
	said(`\[remote rejected\].*\(([^)]*)\)`, tool.Failed, "The remote rejected the push: $1", "the remote's rules forbid it; push to another branch, or ask the user"),
	said(`\[rejected\] +(\S+) .*would clobber existing tag`, tool.Conflict, "The remote's tag $1 differs from the local tag", "fetch without tags, or ask the user to delete the local tag"),
	own(`transport '[^']*' not allowed`, tool.PermissionDenied, "the user can allow the protocol in the plugin's settings (protocols)"),
	own(`Host key verification failed`, tool.PermissionDenied, "the host's key is unknown or has changed; the user must check it and add it to the file that ssh.known_hosts of the plugin's settings names"),
	own(`could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|Permission denied \(|HTTP 40[13]|error: 40[13]`, tool.PermissionDenied,
		"the user must set credentials for this address, or ssh.key, in the plugin's settings"),
	own(`Could not resolve host|Couldn't connect|Failed to connect|Connection refused|Network is unreachable|unable to access '[^']*': .*(?:resolve|connect)`, tool.Unavailable,
		"the remote must be up, and the plugin needs network { mode = \"host\" } in its sandbox"),
	own(`unable to access '[^']*': .*(?:certificate|SSL|TLS|gnutls)`, tool.Unavailable, "the user must check the address and the trusted certificates"),
	own(`Operation too slow|timed out`, tool.Timeout, "try again later"),
	own(`[Rr]epository (?:'[^']*' )?not found|does not appear to be a git repository`, tool.NotFound, "check the address of the remote"),
	own(`couldn't find remote ref`, tool.NotFound, "omit branch, or name one that exists"),
	own(`a branch named '[^']*' already exists`, tool.Conflict, "git_switch to it, or use another name"),
	own(`'[^']*' is not a valid branch name`, tool.InvalidArgument, branchNameHint),
	own(`invalid reference: `, tool.NotFound, "list branches with git_branch, or set create to create one"),
	said(`is already (?:checked out|used by worktree)`, tool.Conflict, "The branch is checked out in another worktree", "switch to another branch"),
	own(`No stash entries found|is not a valid reference|stash@\{\d+\} is not|log for 'stash' only has|is not a stash`, tool.NotFound, stashHint),
	said(`does not have any commits yet|bad default revision|ambiguous argument 'HEAD'|You do not have the initial commit`, tool.NotFound, "There is no commit yet", "create the first commit with git_commit"),
	own(`current branch appears to be broken|bad object HEAD`, tool.Failed, damagedHint),
	own(`unknown revision|bad revision|Needed a single revision|Invalid revision range|bad object`, tool.NotFound, "find revisions with git_log and git_branch"),
	own(`[Oo]ut of memory|cannot allocate memory|mmap failed`, tool.ResourceExhausted, "ask for less, or raise limits.memory of the plugin's sandbox"),
	own(`No space left on device|File too large|Disk quota exceeded|unable to write`, tool.ResourceExhausted,
		"git_add large files first, then git_commit without files; the user can raise limits.file_size and limits.tmp_size of the plugin's sandbox"),
	own(`Read-only file system|Permission denied|Operation not permitted`, tool.PermissionDenied, "the file is protected, or the workspace is read-only"),
	own(`unable to read [0-9a-f]+|object file .* is empty|loose object .* is corrupt|bad tree object|missing (?:blob|tree|commit)|index file (?:corrupt|smaller)|bad (?:index|signature)|unable to read tree`, tool.Failed, damagedHint),
	own(`bad config|bad numeric config|bad boolean config|unknown repository extension|Expected git repo version`, tool.Failed, "git cannot use the repository; the user must repair .git/config"),
}

const (
	lockedHint     = "try again; if the lock remains, the user must check that no other git process is running, and remove $1 from .git"
	identityHint   = "the user must set author_name and author_email in the plugin's settings, or user.name and user.email in the repository"
	rebaseHint     = "edit the files in conflict, git_add them and git_rebase with continue, or undo the rebase with git_rebase and abort"
	branchNameHint = "use letters, digits, and - _ . / between them"
	stashHint      = "list the stashes with git_stash and action list"
	damagedHint    = "the repository is damaged; the user can inspect it with git fsck"
)

// explain returns the error for a failed run of git.
func (r *repository) explain(out output) error {
	text := r.hidePaths(out.stderr)
	local := remoteLines.ReplaceAllString(text, "") // a remote can write anything
	r.call.Logger().Debug("git failed", "exit", out.exit, "said", text)
	for _, known := range complaints {
		found := known.pattern.FindStringSubmatch(local)
		if found == nil {
			continue
		}
		fill := func(text string) string {
			if len(found) > 1 {
				text = strings.ReplaceAll(text, "$path", r.namesOf(found[1:2]))
			}
			for i, group := range found[1:] {
				text = strings.ReplaceAll(text, "$"+strconv.Itoa(i+1), display.Name(group).String())
			}
			return text
		}
		message := fill(known.message)
		if message == "" {
			at := known.pattern.FindStringIndex(local)[0]
			message = "git: " + r.words(local[strings.LastIndexByte(local[:at], '\n')+1:])
		}
		return tool.Errorf(known.code, "%s", message).WithHint("%s", fill(known.hint)).WithCause(&gitError{out.exit, text})
	}
	first := firstLines(r.withoutForbidden(text))
	if first == "" {
		first = "it gave no reason"
	}
	return tool.Errorf(tool.Failed, "git failed: %s", first).WithHint("check the state of the repository with git_status").WithCause(&gitError{out.exit, text})
}

// words returns the first line of git's output, and the files that git lists below it.
func (r *repository) words(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	line = strings.TrimPrefix(strings.TrimPrefix(line, "warning: "), "hint: ")
	words := firstLines(r.withoutForbidden(line))
	var files []string
	for file := range strings.Lines(rest) {
		name, listed := strings.CutPrefix(strings.TrimSuffix(file, "\n"), "\t")
		if !listed {
			break
		}
		files = append(files, name)
	}
	if len(files) > 0 {
		words += " " + r.namesOf(files)
	}
	return words
}

var remoteLines = regexp.MustCompile(`(?m)^(?:remote: |fatal: remote error: ).*$`)

// gitError is the complete output of git, for the log.
type gitError struct {
	exit int
	said string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git: exit code %d: %s", e.exit, e.said)
}

// hidePaths makes the machine's paths in git's output relative, and hides a secret that
// the remote may have repeated.
func (r *repository) hidePaths(said string) string {
	if r.secret != "" {
		said = strings.ReplaceAll(said, r.secret, "[secret "+r.secretName+"]")
	}
	for _, dir := range []string{r.gitDir, r.commonDir, r.worktree} {
		said = strings.ReplaceAll(said, dir+"/", "")
		said = strings.ReplaceAll(said, dir, ".")
	}
	if r.scratch != "" {
		said = strings.ReplaceAll(said, filepath.Clean(r.scratch), ".")
	}
	for _, f := range r.folders {
		said = strings.ReplaceAll(said, f.real, ".")
	}
	for _, file := range []string{r.settings.CAFile, os.Getenv("GIT_SSL_CAINFO"), r.settings.SSH.Key, r.settings.SSH.KnownHosts} {
		if file != "" {
			said = strings.ReplaceAll(said, file, filepath.Base(file))
		}
	}
	return said
}

// maxSaid is the maximum length of git's words in an error, in bytes.
const maxSaid = 400

// firstLines returns the first three lines of git's output, without hints and warnings.
func firstLines(said string) string {
	var kept []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "hint:") || strings.HasPrefix(line, "warning:") {
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "fatal: "), "error: ")
		if kept = append(kept, line); len(kept) == 3 {
			break
		}
	}
	return display.Cut(display.Visible(strings.Join(kept, "; ")), maxSaid)
}
