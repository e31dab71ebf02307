package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// approvalsData is the data of the page of calls that wait.
type approvalsData struct {
	// Waiting are the calls that wait, the oldest first.
	Waiting []httpapi.Approval
	// Card is the call that is shown; nil if none waits.
	Card *card
	// Did is the call that was decided before; nil if none was.
	Did *httpapi.Approval
	// MayDecide is set if the caller decides about calls at all.
	MayDecide bool
}

// showApprovals shows the call of the address, or the oldest that waits.
func showApprovals(v *visit) (content, error) { return approvalsWith(v, v.PathValue("id"), nil) }

// approvalsWith shows a call, and a problem with its decision.
func approvalsWith(v *visit, id string, problem *httpapi.Problem) (content, error) {
	data := approvalsData{MayDecide: v.caller.Roles.Has(auth.Approver)}
	var err error
	data.Waiting, err = v.api.Approvals(v.Context(), client.ApprovalFilter{States: []approval.State{approval.Open}, Limit: maxWaiting})
	if err != nil {
		return content{}, err
	}
	slices.Reverse(data.Waiting)
	if did := v.URL.Query().Get("did"); did != "" {
		if whole, err := v.api.Approval(v.Context(), did); err == nil { // otherwise it is gone, or was never there
			data.Did = &whole
		}
	}
	if id == "" {
		if data.Waiting, id = soonest(data.Waiting); id == "" {
			return content{Title: "Approvals", Body: data, Problem: problem}, nil
		}
	}
	whole, err := v.api.Approval(v.Context(), id)
	if err != nil {
		return content{}, err
	}
	data.Card = newCard(v, whole)
	data.Card.Scope = askedScope(v, whole)
	return content{Title: "Approvals", Body: data, Problem: problem}, nil
}

// soonest returns the id of the first call that the caller may decide, or else of the first.
func soonest(waiting []httpapi.Approval) ([]httpapi.Approval, string) {
	if len(waiting) == 0 {
		return waiting, ""
	}
	i := slices.IndexFunc(waiting, func(a httpapi.Approval) bool { return !a.MayNotDecide })
	return waiting, waiting[max(i, 0)].ID
}

// answerOf returns the answer of a form, bound to the call that the form showed. suffix ends the
// names of its fields.
func answerOf(v *visit, suffix string) client.Answer {
	return client.Answer{
		Message:       v.PostForm.Get("message"),
		ArgumentsHash: v.PostForm.Get("arguments_hash" + suffix),
		PreviewDigest: v.PostForm.Get("preview_digest" + suffix),
	}
}

// approve lets a call run, and later ones if the form has a scope.
func approve(v *visit) (string, *content, error) {
	answer := answerOf(v, "")
	if v.PostForm.Has("covers") {
		terms, problem := readScope(v.PostForm)
		if problem != nil {
			return again(v, problem)
		}
		answer.Grant = terms
	}
	_, err := v.api.Approve(v.Context(), v.PathValue("id"), answer)
	return decided(v, err)
}

// reject refuses a call.
func reject(v *visit) (string, *content, error) {
	_, err := v.api.Reject(v.Context(), v.PathValue("id"), answerOf(v, ""))
	return decided(v, err)
}

// decided goes on with the next call, or shows the call again as it is now if the decision was
// refused: another person may have decided, or its time is over.
func decided(v *visit, err error) (string, *content, error) {
	if err == nil {
		return "/?did=" + url.QueryEscape(v.PathValue("id")), nil, nil
	}
	problem, ok := errors.AsType[*httpapi.Problem](err)
	if !ok || problem.Status == http.StatusNotFound {
		return "", nil, err
	}
	return again(v, problem)
}

func again(v *visit, problem *httpapi.Problem) (string, *content, error) {
	shown, err := approvalsWith(v, v.PathValue("id"), problem)
	return "", &shown, err
}
