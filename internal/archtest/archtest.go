// Package archtest holds the shape of the code: its tests compare what the
// packages import with the table in ARCHITECTURE.md, so that the table cannot
// go stale and no dependency arrives unseen. It contains no other code.
package archtest
