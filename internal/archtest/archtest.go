// Package archtest keeps the structure of the code: its tests compare the imports of packages
// with the table in ARCHITECTURE.md, so that the table stays true and no dependency arrives
// unnoticed. It contains no other code.
package archtest
