package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// withVault starts the plugin with a workspace and a vault.
func withVault(t *testing.T, settings map[string]any) (p *sdktest.Plugin, dir, vault string) {
	t.Helper()
	dir = filetest.Tree(t, map[string]string{"a.txt": "mine\n", ".git/hooks/": "", "dir/": ""})
	vault = filetest.Tree(t, map[string]string{
		"letter.txt": "never shown\n", "deep/er/b.bin": "\x00\x01", "link": "-> letter.txt", "linked": "-> deep", "out": "-> " + dir + "/a.txt", "big": strings.Repeat("x", 2000), ".env": "X=1\n",
	})
	if err := errors.Join(syscall.Mkfifo(filepath.Join(vault, "fifo"), 0o600), os.Chmod(filepath.Join(vault, "letter.txt"), 0o640)); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"vaults": map[string]any{"notes": vault, "gone": vault + "/none", "inside": dir, "above": filepath.Dir(dir)}}
	maps.Copy(all, settings)
	p = sdktest.Start(t, newPlugin(), sdktest.Options{Context: tool.Context{Roots: []string{dir}, MaxOutput: 16 * tool.KiB}, Settings: all})
	return p, dir, vault
}

// vaultCopyCalls is calls that set every argument.
func vaultCopyCalls() []vaultCopyArgs {
	return []vaultCopyArgs{
		{Source: "notes/letter.txt", Dest: "new/letter.txt"},
		{Source: "notes/deep/er/b.bin", Dest: "a.txt", Overwrite: true},
	}
}

// A file from a vault arrives unchanged, and nothing reveals its content.
func TestVaultCopy(t *testing.T) {
	p, dir, vault := withVault(t, nil)
	want, wantVault := contents(t, dir), contents(t, vault)
	const note = "\nEveryone who can read the workspace can then read it."
	for i, tt := range []struct {
		text, summary, shown string
		effects              []tool.Effect
		files                map[string]string
	}{
		{
			text:    "Copied notes/letter.txt to new/letter.txt (12 bytes, sha256:HASH)",
			summary: "Copies notes/letter.txt of a vault to new/letter.txt", shown: "new: 12 bytes, sha256:HASH\nNothing is replaced." + note,
			effects: []tool.Effect{effect("new/letter.txt", "create")}, files: map[string]string{"new/": "", "new/letter.txt": "never shown\n"},
		},
		{
			text:    "Copied notes/deep/er/b.bin to a.txt (2 bytes, sha256:HASH)",
			summary: "Copies notes/deep/er/b.bin of a vault to a.txt, replacing the existing file",
			shown:   "new: 2 bytes, sha256:HASH\na.txt is replaced, and cannot be restored.\nold: 5 bytes, sha256:HASH, text/plain; charset=utf-8" + note,
			effects: []tool.Effect{effect("a.txt", "update")}, files: map[string]string{"a.txt": "\x00\x01"},
		},
	} {
		in := vaultCopyCalls()[i]
		preview, err := p.Preview(t.Context(), "vault_copyto", in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.summary+"\n"+tt.shown, withoutHashes(preview.Summary+"\n"+textOf(preview))); diff != "" {
			t.Errorf("preview (-want +got):\n%s", diff)
		}
		got := callWith(t, p, preview.Digest, "vault_copyto", in)
		if withoutHashes(got.Text()) != tt.text {
			t.Errorf("vault_copyto = %q, %q, want %q", got.Text(), message(got), tt.text)
		}
		if diff := cmp.Diff(tt.effects, got.Effects); diff != "" {
			t.Errorf("effects (-want +got):\n%s", diff)
		}
		maps.Copy(want, tt.files)
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Errorf("the files (-want +got):\n%s", diff)
		}
		if told := asJSON(t, got) + asJSON(t, preview); strings.Contains(told, "never") || strings.Contains(told, vault) {
			t.Errorf("the call tells what the file holds, or where: %s", told)
		}
	}
	if diff := cmp.Diff(wantVault, contents(t, vault)); diff != "" {
		t.Errorf("the vault (-want +got):\n%s", diff)
	}
}

// withoutHashes puts HASH in the place of every hash.
func withoutHashes(text string) string {
	parts := strings.Split(text, "sha256:")
	for i, part := range parts[1:] {
		parts[i+1] = "HASH" + part[min(64, len(part)):]
	}
	return strings.Join(parts, "sha256:")
}

func TestVaultCopyRefused(t *testing.T) {
	p, dir, vault := withVault(t, map[string]any{"vault_max_size": 1000})
	want := contents(t, dir)
	const denied = "permission_denied: Path not allowed by security policy: "
	for _, tt := range []struct {
		name         string
		source, dest string
		err, hint    string // hint is how it begins
	}{
		{"no vault of that name", "other/x", "x", `not_found: There is no vault "other"`, "source begins with the name of a vault and a slash; there are: above, gone, inside, notes"},
		{"no name", "", "x", `not_found: There is no vault ""`, "source begins"},
		{"no such file", "notes/none", "x", "not_found: File not found: notes/none", "name a directory of the vault"},
		{"no such directory", "notes/none/x", "x", "not_found: File not found: notes/none/x", "name a directory of the vault"},
		{"the vault", "notes", "x", "invalid_argument: notes is a directory, expected a file in it", "in it there are:\n.env  4\nbig  2000\ndeep/\nfifo  FIFO\nletter.txt  12\nlink  symlink\n"},
		{"a directory", "notes/deep/er", "x", "invalid_argument: notes/deep/er is a directory, expected a file in it", "in it there are:\nb.bin  2"},
		{"link", "notes/link", "x", denied + "notes/link", "a symbolic link leads there"},
		{"link on the way", "notes/linked/er/b.bin", "x", denied + "notes/linked/er/b.bin", "a symbolic link leads there"},
		{"link out", "notes/out", "x", denied + "notes/out", "a symbolic link leads there"},
		{"FIFO", "notes/fifo", "x", "failed: Failed to read file: notes/fifo is a FIFO, not a regular file", ""},
		{"out of the vault", "notes/../../etc/passwd", "x", denied + "notes/../../etc/passwd", "it is outside the vault"},
		{"secret", "notes/.env", "x", denied + "notes/.env", "it is outside the vault"},
		{"too large", "notes/big", "x", "resource_exhausted: notes/big has 2000 bytes, at most 1000 can be copied from a vault", "the setting vault_max_size"},
		{"missing vault", "gone/x", "x", "unavailable: The vault gone cannot be opened", "it must be a directory outside of the workspace"},
		{"vault in the workspace", "inside/a.txt", "x", "unavailable: The vault inside cannot be opened", "it must be"},
		{"vault around the workspace", "above/x", "x", "unavailable: The vault above cannot be opened", "it must be"},
		{"taken", "notes/letter.txt", "a.txt", "failed: Failed to write file: file exists", "set overwrite"},
		{"a directory to be", "notes/letter.txt", "sub/", "invalid_argument: sub/ ends in /, so it names a directory, but a file is expected", "use the path of the file, such as sub/file.txt"},
		{"into a directory", "notes/letter.txt", "dir", "failed: Failed to write file: dir is a directory, which is never replaced", "dest is the whole new path; to put it into the directory give dir/letter.txt"},
		{"outside", "notes/letter.txt", "../x", denied + "../x", "use a path relative"},
		{"hook", "notes/letter.txt", ".git/hooks/x", denied + ".git/hooks/x", "it is protected"},
		{"back into the vault", "notes/letter.txt", vault + "/x", denied + vault + "/x", "use a path relative"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := vaultCopyArgs{Source: tt.source, Dest: tt.dest}
			_, err := p.Preview(t.Context(), "vault_copyto", in)
			got := p.Call(t.Context(), "vault_copyto", in)
			if message(got) != tt.err || errorText(err) != tt.err {
				t.Fatalf("vault_copyto = %q, %q; the preview says %v; want %q", got.Text(), message(got), err, tt.err)
			}
			if !strings.HasPrefix(got.Error.Hint, tt.hint) {
				t.Errorf("hint = %q, want %q", got.Error.Hint, tt.hint)
			}
			if told := strings.ReplaceAll(got.Error.ModelText(), tt.dest, ""); strings.Contains(told, vault) {
				t.Errorf("the error tells where the vault is: %s", told)
			}
			if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
				t.Errorf("the files (-want +got):\n%s", diff)
			}
		})
	}
	none := start(t, dir, tool.MiB)
	listed := func(p *sdktest.Plugin) bool {
		return slices.ContainsFunc(p.Tools(), func(s tool.Spec) bool { return s.Name == "vault_copyto" && s.Unavailable == "" })
	}
	if listed(none) {
		t.Error("vault_copyto is listed without vaults")
	}
	with := sdktest.Start(t, newPlugin(), sdktest.Options{Settings: map[string]any{"vaults": map[string]string{"letters": t.TempDir()}}})
	if !listed(with) {
		t.Error("vault_copyto is not listed with a vault")
	}
}

// The tool copies exactly what the preview has announced.
func TestVaultCopyChangedSincePreview(t *testing.T) {
	p, _, vault := withVault(t, nil)
	in := vaultCopyCalls()[0]
	preview, err := p.Preview(t.Context(), "vault_copyto", in)
	if err != nil || bytes.Equal(preview.Digest, nil) {
		t.Fatal(preview, err)
	}
	if err := os.WriteFile(filepath.Join(vault, "letter.txt"), []byte("another one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := callWith(t, p, preview.Digest, "vault_copyto", in); got.Error == nil || got.Error.Code != tool.Conflict {
		t.Errorf("vault_copyto = %q, %q, want a conflict", got.Text(), message(got))
	}
	if got := callWith(t, p, nil, "vault_copyto", in); got.Error != nil {
		t.Errorf("without the digest: %s, so the test shows nothing", message(got))
	}
}
