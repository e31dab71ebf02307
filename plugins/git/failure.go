package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// complaint is something that git says and what a model is told instead. In the
// texts, $1 is what the expression's first group has found, and $path the same as a
// path relative to the workspace.
type complaint struct {
	said          *regexp.Regexp
	code          tool.Code
	message, hint string
}

func knows(said string, code tool.Code, message, hint string) complaint {
	return complaint{said: regexp.MustCompile(said), code: code, message: message, hint: hint}
}

// complaints are in their order: the first that fits counts.
var complaints = []complaint{
	// These name files, in which all others can be found.
	knows(`(?m)^error: The following untracked working tree files would be (?:overwritten|removed) by [^\n]*\n\t([^\n]*)`, tool.Conflict,
		"Files that git does not know are in the way, first $path", "add and commit, move or delete them first; git_status lists them"),
	knows(`(?m)^error: Your local changes to the following files would be overwritten|^error: Entry '.*' (?:would be overwritten by|not uptodate\. Cannot)`, tool.Conflict,
		"Changes that are not committed are in the way", "commit, stash or restore them first; git_status lists them"),
	knows(`(?m)^error: pathspec '(.*)' did not match`, tool.NotFound, "git knows no file $path", "git_status and search_files show which there are"),
	knows(`(?m)^fatal: no such path '([^\n]*)' in HEAD$`, tool.NotFound, "There is no $path in that commit", "name another path or commit"),
	knows(`(?m)^fatal: no such path ([^\n]*) in [^ \n]+$`, tool.NotFound, "There is no $path in that commit", "name another path or commit"),
	knows(`(?m)^fatal: file (.*) has only (\d+) lines?`, tool.InvalidArgument, "The file has only $2 lines", "ask for lines that are there"),
	knows(`(?m)^(?:fatal: )?error processing config|^(?:fatal|warning): unable to access '[^']*': Permission denied`, tool.PermissionDenied, "The git repository cannot be used: its configuration includes a file outside of it", "the user can remove the include from .git/config"),
	knows(`Unable to create '[^']*?([^/']+\.lock)': File exists`, tool.Conflict, "Another git process works in the repository, or one was killed and has left $1",
		"try again; if it stays, the user must see that no git runs there and remove $1"),
	knows(`(?m)^(?:fatal|error): (?:[^\n]*: )?cannot lock ref '([^\n]*)': '([^\n]*)' exists; cannot create`, tool.Conflict, "There cannot be $1 while there is $2", "choose another name; of a remote's branches, set prune to forget those that are gone"),
	knows(`(?m)^(?:fatal|error): (?:[^\n]*: )?cannot lock ref '([^\n]*)': (?:is at|reference |unable to resolve)`, tool.Conflict, "The reference $1 was changed or is locked by another process", "look at it again and repeat the call"),
	knows(`(?m)^fatal: not a git repository`, tool.NotFound, "Not a git repository", "its git directory is damaged or not one"),
	knows(`(?m)^(?:Author|Committer) identity unknown|^fatal: (?:empty ident name|unable to auto-detect email|no (?:email|name) was given)`, tool.Failed,
		"There is no identity for commits", "the user must set author_name and author_email for the plugin, or user.name and user.email in the repository"),
	knows(`you need to resolve your current index first|unmerged files|needs merge|Committing is not possible|cannot (?:create|save).*unmerged`, tool.Conflict,
		"There are conflicts that are not resolved", "edit the files that git_status lists as unmerged, then git_add them"),
	knows(`Not possible to fast-forward|Diverging branches can't be fast-forwarded`, tool.Conflict, "The branch and its upstream have both got commits", "call it with mode merge or rebase"),
	knows(`refusing to merge unrelated histories`, tool.Conflict, "The two branches have no commit in common", "look whether the remote and the branch are the right ones"),
	knows(`(?m)\[rejected\].*\((?:fetch first|non-fast-forward)\)$|^(?:hint: )?Updates were rejected`, tool.Conflict, "The remote has rejected the push: it has commits that the branch lacks", "git_pull first, then push again"),
	knows(`\[(?:remote )?rejected\].*\(stale info\)`, tool.Conflict, "The remote has rejected the push: its branch is not what was last fetched", "git_fetch, and look at what came"),
	knows(`\[remote rejected\].*\(([^)]*)\)`, tool.Failed, "The remote has refused the push: $1", "the remote's rules forbid it; push to another branch, or ask the user"),
	knows(`\[rejected\] +(\S+) .*would clobber existing tag`, tool.Conflict, "The remote has another tag $1 than the repository", "the user can delete the one here; without tags, branches alone are fetched"),
	knows(`transport '([^']*)' not allowed`, tool.PermissionDenied, "The settings do not allow remotes by $1", "the user can list the protocol in the plugin's settings (protocols)"),
	knows(`Host key verification failed`, tool.PermissionDenied, "The host of the remote is not known by its key, or has another", "the user must check it, and add it to the file that ssh.known_hosts of the plugin's settings names"),
	knows(`could not read (?:Username|Password)|Authentication failed|terminal prompts disabled|Permission denied \(|HTTP 40[13]|error: 40[13]`, tool.PermissionDenied,
		"The remote wants to know who calls", "the user must set credentials for its address in the plugin's settings, or ssh.key"),
	knows(`Could not resolve host|Couldn't connect|Failed to connect|Connection refused|Network is unreachable|unable to access '[^']*': .*(?:resolve|connect)`, tool.Unavailable,
		"The remote cannot be reached", "the plugin needs network { mode = \"host\" } in its sandbox, and the remote must be up"),
	knows(`unable to access '[^']*': .*(?:certificate|SSL|TLS|gnutls)`, tool.Unavailable, "The connection to the remote is not secure: its certificate is not trusted", "the user must check the address and the system's certificates"),
	knows(`Operation too slow|timed out`, tool.Timeout, "The remote does not answer", "try again later"),
	knows(`[Rr]epository (?:'[^']*' )?not found|does not appear to be a git repository`, tool.NotFound, "There is no repository at the remote's address", "look at the address of the remote"),
	knows(`couldn't find remote ref (\S+)`, tool.NotFound, "The remote has no $1", "leave the branch out, or name one that is there"),
	knows(`a branch named '([^']*)' already exists`, tool.Conflict, "There is a branch $1 already", "git_switch to it, or choose another name"),
	knows(`'([^']*)' is not a valid branch name`, tool.InvalidArgument, "No branch can have the name $1", "use letters, digits, and - _ . / between them"),
	knows(`invalid reference: (.*)`, tool.NotFound, "There is no branch $1", "git_branch lists them; set create to make one"),
	knows(`is already (?:checked out|used by worktree)`, tool.Conflict, "The branch is checked out in another worktree", "switch to another branch"),
	knows(`No stash entries found|is not a valid reference|stash@\{\d+\} is not|log for 'stash' only has|is not a stash`, tool.NotFound, "There is no such stash", "git_stash with action list shows which there are"),
	knows(`does not have any commits yet|bad default revision|ambiguous argument 'HEAD'|You do not have the initial commit`, tool.NotFound, "There is no commit yet", "git_commit makes the first"),
	knows(`current branch appears to be broken|bad object HEAD`, tool.Failed, "The git repository is damaged: HEAD leads to no commit", "the user can see more with git fsck"),
	knows(`unknown revision|bad revision|Needed a single revision|Invalid revision range|bad object`, tool.NotFound, "There is no such revision", "git_log and git_branch show which there are"),
	knows(`[Oo]ut of memory|cannot allocate memory|mmap failed`, tool.ResourceExhausted, "git has not got enough memory", "ask for less, or raise limits.memory of the plugin's sandbox"),
	knows(`No space left on device|File too large|Disk quota exceeded|unable to write`, tool.ResourceExhausted, "git cannot write: there is no room, or the file is too large", "git_add large files first, then git_commit without files; the user can raise limits.file_size and limits.tmp_size of the plugin's sandbox"),
	knows(`Read-only file system|Permission denied|Operation not permitted`, tool.PermissionDenied, "git may not change something there", "it is protected, or the workspace is read-only"),
	knows(`unable to read [0-9a-f]+|object file .* is empty|loose object .* is corrupt|bad tree object|missing (?:blob|tree|commit)|index file (?:corrupt|smaller)|bad (?:index|signature)|unable to read tree`, tool.Failed,
		"The git repository is damaged", "the user can see more with git fsck"),
	knows(`bad config|bad numeric config|bad boolean config|unknown repository extension|Expected git repo version`, tool.Failed, "The git repository cannot be used: its configuration is wrong", "the user must repair .git/config"),
}

// explain says why git has failed.
func (r *repository) explain(out output) error {
	said := r.hidePaths(out.stderr)
	own := remoteLines.ReplaceAllString(said, "") // a remote can say anything
	r.call.Logger().Trace("git has failed", "exit", out.exit, "said", said)
	for _, known := range complaints {
		found := known.said.FindStringSubmatch(own)
		if found == nil {
			continue
		}
		fill := func(text string) string {
			if len(found) > 1 {
				text = strings.ReplaceAll(text, "$path", r.namesOf(found[1:2]))
			}
			for i, group := range found[1:] {
				text = strings.ReplaceAll(text, "$"+string(rune('1'+i)), tool.VisibleName(group))
			}
			return text
		}
		return tool.Errorf(known.code, "%s", fill(known.message)).WithHint("%s", fill(known.hint)).WithCause(&gitError{out.exit, said})
	}
	first := firstLines(r.withoutForbidden(said))
	if first == "" {
		first = "it does not say why"
	}
	return tool.Errorf(tool.Failed, "git has failed: %s", first).WithHint("git_status shows the state of the repository").WithCause(&gitError{out.exit, said})
}

var remoteLines = regexp.MustCompile(`(?m)^remote: .*$`)

// gitError is what git itself has said, for the log.
type gitError struct {
	exit int
	said string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git: exit code %d: %s", e.exit, e.said)
}

// hidePaths replaces the paths of the machine in what git says, and a secret that the
// other side may have repeated.
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
	return said
}

// maxSaid is how much of git's own words a model reads.
const maxSaid = 400

// firstLines are the first lines that git has said, without hints.
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
	text := tool.Visible(strings.Join(kept, "; "))
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	return text
}
