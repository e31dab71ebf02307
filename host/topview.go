package main

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

func bold(text string) string { return "\x1b[1m" + text + "\x1b[m" }

func reversed(text string) string { return "\x1b[7m" + text + "\x1b[m" }

// View implements [tea.Model]. The renderer cuts lines at the width of the screen.
func (m *topModel) View() tea.View {
	view := tea.NewView("")
	view.AltScreen = true
	if m.height < 3 || m.width < 10 {
		return view
	}
	lines, keys := m.lists(), "j k select  Enter show  c cancel  q end"
	if m.card != nil {
		lines, keys = m.card.view(m), m.card.keys(m)
	}
	lines = lines[:min(len(lines), m.height-2)]
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	last := m.said
	if m.asks != nil {
		typed := line(m.asks.text)
		if room := max(8, m.width-len(m.asks.prompt)-2); len([]rune(typed)) > room { // its end is what matters
			runes := []rune(typed)
			typed = "…" + string(runes[len(runes)-room+1:])
		}
		last = m.asks.prompt + typed + "_"
	}
	view.Content = strings.Join(append(lines, keys, last), "\n")
	return view
}

// lists returns what is shown while no call is open: as many rows of each list as there is room
// for, those that wait for a person first.
func (m *topModel) lists() []string {
	title := "toolhost top"
	if m.app.remote != "" {
		title += " of " + m.app.remote
	}
	if m.absent != "" {
		return []string{bold(title), "no host answers: " + m.absent + "; waiting for one"}
	}
	lines := []string{bold(title)}
	room := m.height - 2 - len(lines)
	section := func(name string, most int, rows []string) {
		most = min(most, room)
		if most < 2 { // the name and one row
			return
		}
		lines = append(lines, bold(fmt.Sprintf("%s: %d", name, len(rows))))
		shown := rows
		if len(rows) > most-1 {
			shown = append(rows[:max(0, most-2):max(0, most-2)], fmt.Sprintf("  ... %d more", len(rows)-max(0, most-2)))
		}
		lines = append(lines, shown...)
		room -= 1 + len(shown)
	}
	section("WAITING", max(3, room/2), m.waitingRows())
	section("CALLS", max(3, room/2), m.callRows())
	section("PLUGINS", max(3, 2*room/3), m.pluginRows())
	if room >= 2 {
		section("EVENTS", room, m.events[:min(len(m.events), room-1)])
	}
	return lines
}

// row returns a row of a list, marked if it is selected.
func (m *topModel) row(id, text string) string {
	if id == m.selected {
		return reversed("> " + text)
	}
	return "  " + text
}

func (m *topModel) waitingRows() (rows []string) {
	for _, r := range m.around(len(m.topNews.open), func(i int) string { return m.topNews.open[i].ID }) {
		of := m.topNews.open[r]
		rows = append(rows, m.row(of.ID, fmt.Sprintf("%-20s %-12s %-9s %s", line(of.Tool), head(line(of.User), 12), until(of), line(of.Summary))))
	}
	return rows
}

func (m *topModel) callRows() (rows []string) {
	for _, i := range m.around(len(m.calls), func(i int) string { return m.calls[i].id }) {
		c := m.calls[i]
		rows = append(rows, m.row(c.id, fmt.Sprintf("%-20s %-12s %-18s %s", line(c.tool), head(line(c.user), 12), line(c.state), m.progress[c.id])))
	}
	return rows
}

// around returns the indexes of a list, beginning near the selected one, so that it is shown even
// if there is no room for all.
func (m *topModel) around(n int, id func(int) string) []int {
	first := 0
	for i := range n {
		if id(i) == m.selected && i > 0 {
			first = i - 1
		}
	}
	indexes := make([]int, 0, n)
	for i := range n {
		indexes = append(indexes, (first+i)%n)
	}
	return indexes
}

func (m *topModel) pluginRows() (rows []string) {
	for _, p := range m.plugins {
		rows = append(rows, fmt.Sprintf("  %-20s %-12s calls %d  crashes %d", line(p.name), p.phase, p.calls, p.crashes))
	}
	return rows
}
