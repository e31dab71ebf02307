package main

import (
	"fmt"
	"strings"
)

// reports are the files of the ledger's package report that format amounts.
var reports = []string{"summary", "monthly", "yearly", "overdue", "largest", "weekly", "taxes", "balance", "export", "audit"}

// ledger makes a Go module with a history of 24 commits. money.Format is used in 12 files.
func ledger(dir string) *repo {
	r := newRepo(dir)
	r.write("go.mod", "module example.com/ledger\n\ngo 1.24\n", "README.md", "# ledger\n\nKeeps accounts in cents. `go test ./...` tests it.\n",
		"VERSION", "1.4.2\n", ".gitignore", "/bin/\n")
	r.commit("Begin")
	r.write("money/money.go", ledgerMoney, "money/money_test.go", ledgerMoneyTest)
	r.commit("money: add amounts")
	r.write("account/account.go", ledgerAccount, "account/account_test.go", ledgerAccountTest)
	r.commit("account: add accounts")
	for i, name := range reports {
		r.write("report/"+name+".go", fmt.Sprintf(ledgerReport, strings.ToUpper(name[:1])+name[1:], name, i+1))
		r.commit("report: add " + name)
	}
	r.write("report/report_test.go", ledgerReportTest)
	r.commit("report: test the summary")
	r.run("git", "tag", "v1.4.2")
	return r
}

const ledgerMoney = `// Package money has amounts in cents.
package money

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Amount is an amount in cents.
type Amount int64

// ErrSyntax means that a text is no amount.
var ErrSyntax = errors.New("not an amount")

// Parse reads an amount such as "12.34".
func Parse(text string) (Amount, error) {
	whole, cents, found := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, ErrSyntax
	}
	if !found {
		return Amount(n * 100), nil
	}
	c, err := strconv.ParseInt(cents, 10, 64)
	if err != nil || len(cents) != 2 {
		return 0, ErrSyntax
	}
	if strings.HasPrefix(whole, "-") {
		c = -c
	}
	return Amount(n*100 + c), nil
}

// Format writes an amount such as "12.34".
func Format(a Amount) string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	return fmt.Sprintf("%s%d.%02d", sign, a/100, a%100)
}

// Share returns a percentage of an amount, rounded to the nearest cent.
func Share(a Amount, percent int) Amount {
	return (a*Amount(percent) + 50) / 100
}
`

const ledgerMoneyTest = `package money

import "testing"

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Amount
	}{{"0", 0}, {"12", 1200}, {"12.34", 1234}, {"-1.50", -150}} {
		if got, err := Parse(tt.in); got != tt.want || err != nil {
			t.Errorf("Parse(%q) = %d, %v, want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestShare(t *testing.T) {
	if got := Share(999, 50); got != 500 {
		t.Errorf("Share(999, 50) = %d, want 500", got)
	}
}
`

const ledgerAccount = `// Package account has accounts with entries.
package account

import (
	"errors"
	"time"

	"example.com/ledger/money"
)

// Entry is one change of an account.
type Entry struct {
	At     time.Time
	Amount money.Amount
	Text   string
}

// Account is a list of entries, oldest first.
type Account struct {
	Name    string
	Limit   money.Amount // how far the balance may go below zero
	entries []Entry
}

// ErrLimit means that an entry would exceed the limit of an account.
var ErrLimit = errors.New("the entry exceeds the limit of the account")

// Post adds an entry. A balance of exactly the limit is allowed.
func (a *Account) Post(e Entry) error {
	if a.Balance()+e.Amount < -a.Limit {
		return ErrLimit
	}
	a.entries = append(a.entries, e)
	return nil
}

// Balance returns the sum of all entries.
func (a *Account) Balance() money.Amount {
	var sum money.Amount
	for _, e := range a.entries {
		sum += e.Amount
	}
	return sum
}

// Between returns the entries from one time on, and before another one.
func (a *Account) Between(from, to time.Time) []Entry {
	var found []Entry
	for _, e := range a.entries {
		if !e.At.Before(from) && e.At.Before(to) {
			found = append(found, e)
		}
	}
	return found
}
`

const ledgerAccountTest = `package account

import (
	"errors"
	"testing"
	"time"
)

func day(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }

func TestPost(t *testing.T) {
	a := Account{Name: "Ada", Limit: 100}
	if err := a.Post(Entry{Amount: -100}); err != nil {
		t.Errorf("an entry down to the limit: %v", err)
	}
	if err := a.Post(Entry{Amount: -1}); !errors.Is(err, ErrLimit) {
		t.Errorf("an entry below the limit: %v, want %v", err, ErrLimit)
	}
}

func TestBetween(t *testing.T) {
	a := Account{Name: "Ada"}
	for n := 1; n <= 3; n++ {
		if err := a.Post(Entry{At: day(n), Amount: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(a.Between(day(1), day(3))); got != 2 {
		t.Errorf("Between finds %d entries, want 2", got)
	}
}
`

const ledgerReport = `package report

import (
	"fmt"
	"strings"

	"example.com/ledger/account"
	"example.com/ledger/money"
)

// %[1]s writes the %[2]s report of accounts: one line for each, and the total.
func %[1]s(accounts []*account.Account) string {
	var b strings.Builder
	b.WriteString("%[2]s report, form %[3]d\n")
	var total money.Amount
	for _, a := range accounts {
		total += a.Balance()
		fmt.Fprintf(&b, "%%-20s %%12s\n", a.Name, money.Format(a.Balance()))
	}
	fmt.Fprintf(&b, "%%-20s %%12s\n", "total", money.Format(total))
	return b.String()
}
`

const ledgerReportTest = `package report

import (
	"strings"
	"testing"

	"example.com/ledger/account"
	"example.com/ledger/money"
)

func TestSummary(t *testing.T) {
	a := &account.Account{Name: "Ada"}
	if err := a.Post(account.Entry{Amount: 1234}); err != nil {
		t.Fatal(err)
	}
	if got := Summary([]*account.Account{a}); !strings.Contains(got, money.Format(1234)) {
		t.Errorf("Summary has no balance:\n%s", got)
	}
}
`
