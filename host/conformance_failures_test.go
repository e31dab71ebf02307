package main

// Why a part of the conformance suite fails.
const (
	noPrompts     = "the host offers no prompts: it serves tools"
	noResources   = "the host offers no resources: what a tool answers with is in its result"
	noCompletion  = "the host completes no arguments: there are no prompts and no templates to complete"
	noLogging     = "the log of a tool is the administrator's and not for clients; the protocol deprecates it"
	noSampling    = "the host never uses the client's model"
	noClientRoots = "the folders that a tool may work in are the administrator's choice, not the client's"
	ownInputNames = "the inputs that a call needs are named by the host, not by the tool: an answer cannot be taken for an approval"
	noTitledEnums = "the sdk makes the forms of questions of Go types, whose tags give no titles to values, and a form has single values only"
	noTasks       = "an extension that the host does not offer: a call that waits for a person is made again"
	noResumption  = "a stream of events cannot be taken up again: a call that was cut off is made again"
	noOwnSchema   = "the sdk makes schemas of Go types, which have no such keywords"
	noHeaderTag   = "the sdk has no tag for arguments that are sent as headers"
)

// failuresStateless maps each scenario or check that fails in revision 2026-07-28 to the
// reason.
var failuresStateless = map[string]string{
	"server-stateless:sep-2575-server-rejects-undeclared-capability": noSampling,
	"server-stateless:sep-2575-missing-capability-http-400":          noSampling,

	"caching:sep-2549-prompts-list-caching-hints":             noPrompts,
	"caching:sep-2549-resources-list-caching-hints":           noResources,
	"caching:sep-2549-resources-templates-list-caching-hints": noResources,

	"completion-complete":           noCompletion,
	"sep-2164-resource-not-found":   noResources,
	"resources-list":                noResources,
	"resources-read-text":           noResources,
	"resources-read-binary":         noResources,
	"resources-templates-read":      noResources,
	"prompts-list":                  noPrompts,
	"prompts-get-simple":            noPrompts,
	"prompts-get-with-args":         noPrompts,
	"prompts-get-embedded-resource": noPrompts,
	"prompts-get-with-image":        noPrompts,

	"input-required-result-basic-elicitation":                                     ownInputNames,
	"input-required-result-ignore-extra-params:sep-2322-ignore-unexpected-params": ownInputNames,
	"input-required-result-basic-sampling":                                        noSampling,
	"input-required-result-capability-check":                                      noSampling,
	"input-required-result-multiple-input-requests":                               noSampling,
	"input-required-result-basic-list-roots":                                      noClientRoots,
	"input-required-result-non-tool-request":                                      noPrompts,

	"tasks-lifecycle":              noTasks,
	"tasks-capability-negotiation": noTasks,
	"tasks-wire-fields":            noTasks,
	"tasks-request-state-removal":  noTasks,
	"tasks-mrtr-input":             noTasks,
	"tasks-mrtr-composition":       noTasks,
	"tasks-request-headers":        noTasks,
	"tasks-dispatch-and-envelope":  noTasks,
	"tasks-required-task-error":    noTasks,

	"json-schema-2020-12":                  noOwnSchema,
	"http-custom-header-server-validation": noHeaderTag,
}

// failuresWithSessions does the same for revision 2025-11-25.
var failuresWithSessions = map[string]string{
	"completion-complete":           noCompletion,
	"resources-list":                noResources,
	"resources-read-text":           noResources,
	"resources-read-binary":         noResources,
	"resources-templates-read":      noResources,
	"resources-subscribe":           noResources,
	"resources-unsubscribe":         noResources,
	"prompts-list":                  noPrompts,
	"prompts-get-simple":            noPrompts,
	"prompts-get-with-args":         noPrompts,
	"prompts-get-embedded-resource": noPrompts,
	"prompts-get-with-image":        noPrompts,

	"logging-set-level":         noLogging,
	"tools-call-with-logging":   noLogging,
	"tools-call-sampling":       noSampling,
	"elicitation-sep1330-enums": noTitledEnums,

	"server-sse-polling":  noResumption,
	"json-schema-2020-12": noOwnSchema,
}
