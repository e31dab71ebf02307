package console

import (
	"html/template"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

const deciders = auth.Approver | auth.Admin

// pages lists the pages, in the order of the navigation. To add one: a row here, a file beside this
// one that asks the interface for the content, and a template that defines "body".
func pages() []page {
	return []page{
		{path: "/{$}", name: "Approvals", roles: deciders, template: "approvals.html", show: showApprovals},
		{path: "/approvals/{id}", template: "approvals.html", show: showApprovals},
		{path: "/batch", template: "batch.html", show: showBatch},
	}
}

// actions lists what forms do. Each has been checked to come from a page of the login.
func actions() []action {
	return []action{
		{path: "/approvals/{id}/approve", template: "approvals.html", do: approve},
		{path: "/approvals/{id}/reject", template: "approvals.html", do: reject},
		{path: "/batch", template: "batch.html", do: decideBatch},
	}
}

// functions are what templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"clock": func(at time.Time) string { return at.Local().Format("15:04:05") },
		"stamp": func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"day":   func(at time.Time) string { return at.Local().Format(time.DateTime) },
	}
}
