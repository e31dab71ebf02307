;;; toolhost.el --- Decide about the calls of AI agents  -*- lexical-binding: t; -*-

;; Author: The authors of toolhost
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, processes

;;; Commentary:

;; `toolhost' follows a host of toolhost, and shows each call that waits for
;; approval in the buffer *toolhost approval*.  There, y approves the call, n
;; rejects it with a message, a approves later calls too, and ? explains.
;;
;; All contact with the host goes through the program toolhost: one process
;; follows the events, and each question and answer is a short one.  So this
;; file needs no keys and no network, and reaches whatever host the program
;; reaches.
;;
;; What agents and plugins have written is shown only as lines that the host
;; has made for people, with every character visible.

;;; Code:

(require 'diff-mode)
(require 'iso8601)
(require 'seq)
(require 'subr-x)
(require 'tabulated-list)

(defgroup toolhost nil
  "Decide about the calls of AI agents."
  :group 'tools)

(defcustom toolhost-command '("toolhost")
  "The program toolhost, and its arguments.
For a configuration, add \"--config\" and its file; for a host on another
machine, after `toolhost login', \"--url\" and its address.  Without
these, the directory from which `toolhost' was called decides."
  :type '(repeat string)
  :risky t)

(defcustom toolhost-pop-up t
  "Whether to show a call in a window when it begins to wait.
The window is never selected."
  :type 'boolean)

(defcustom toolhost-guard 1.0
  "How many seconds after another call has appeared no key decides about it.
What is typed meanwhile was meant for something else."
  :type 'number)

(defface toolhost-label '((t :inherit bold))
  "Face of labels and headings, which are words of the host.")

(defface toolhost-said '((t :inherit italic))
  "Face of what the agent says.")

;;;; What is known of the host

(defvar toolhost--directory nil "The directory in which the program runs.")
(defvar toolhost--events nil "The process that prints events.")
(defvar toolhost--retry nil "The timer that starts the next one.")
(defvar toolhost--pause 1 "How many seconds the timer waits.")
(defvar toolhost--state "not connected" "How the connection is, for people.")
(defvar toolhost--waiting nil "The approvals that wait, the oldest first.")
(defvar toolhost--known nil "The IDs of those that were noticed.")
(defvar toolhost--listing nil "Non-nil while the approvals are listed.
The symbol `again' means that something has happened since.")

(defun toolhost--get (record key)
  "Return the value of KEY in RECORD, a JSON object."
  (gethash key record))

(defun toolhost--parse (text)
  "Return the value of TEXT, which is JSON.
Emacs cannot read the character NUL in JSON: U+FFFD takes its place."
  (json-parse-string (replace-regexp-in-string "\\\\\\(?:u0000\\|.\\)" #'toolhost--without-nul text t t)
                     :array-type 'list :null-object nil :false-object nil))

(defun toolhost--without-nul (escape)
  "Return ESCAPE, an escape sequence of JSON, or that of U+FFFD for NUL."
  (if (equal escape "\\u0000") "\\ufffd" escape))

(defun toolhost--plain (text)
  "Return TEXT, a name, as at most 40 harmless characters."
  (truncate-string-to-width
   (replace-regexp-in-string "[^ -~[:alnum:]]" "?" (or text "")) 40))

(defun toolhost--until (record)
  "Return until when RECORD can be decided."
  (condition-case nil
      (format-time-string
       "%T" (encode-time (iso8601-parse (toolhost--get record "expires"))))
    (error "")))

;;;; The program

(defun toolhost--start (args &rest options)
  "Start the program with ARGS and the OPTIONS of `make-process'."
  (let ((default-directory (or toolhost--directory "/")))
    (unless (executable-find (car toolhost-command))
      (error "There is no program %s: see `toolhost-command'" (car toolhost-command)))
    (apply #'make-process :name "toolhost" :command (append toolhost-command args)
           :connection-type 'pipe :coding 'utf-8-unix :noquery t options)))

(defun toolhost--run (args then)
  "Run the program with ARGS and --json.
Then call THEN with the value that it has printed, or with nil and what
it has said about its failure."
  (let* ((out (generate-new-buffer " *toolhost output*" t))
         (err (generate-new-buffer " *toolhost errors*" t))
         (errors (make-pipe-process :name "toolhost errors" :buffer err
                                    :coding 'utf-8-unix :noquery t :sentinel #'ignore)))
    (condition-case failure
        (toolhost--start
         (append args '("--json")) :buffer out :stderr errors
         :sentinel
         (lambda (process _)
           (unless (process-live-p process)
             (while (accept-process-output errors)) ; to its end
             (let ((text (with-current-buffer out (buffer-string)))
                   (said (with-current-buffer err (string-trim (buffer-string))))
                   (done (zerop (process-exit-status process))))
               (kill-buffer out)
               (kill-buffer err)
               (if done (funcall then (toolhost--parse text) nil)
                 (funcall then nil said))))))
      (error
       (delete-process errors)
       (kill-buffer out)
       (kill-buffer err)
       (funcall then nil (error-message-string failure))))))

;;;; The connection

(defun toolhost--connect ()
  "Follow the events of the host, unless that is done already."
  (when toolhost--retry
    (cancel-timer toolhost--retry)
    (setq toolhost--retry nil))
  (unless (process-live-p toolhost--events)
    (condition-case failure
        (setq toolhost--events
              (toolhost--start '("events" "--json" "--types" "tool.approval")
                               :filter #'toolhost--read :sentinel #'toolhost--ended))
      (error (toolhost--again (error-message-string failure))))))

(defun toolhost--again (why)
  "Connect again after a pause, which grows; WHY is the reason."
  (toolhost--set-state why)
  (setq toolhost--retry (run-at-time toolhost--pause nil #'toolhost--connect)
        toolhost--pause (min 60 (* 2 toolhost--pause))))

(defconst toolhost--longest (* 1024 1024) "The most characters of one line.")

(defun toolhost--read (process text)
  "Read TEXT, lines that PROCESS has printed."
  (let* ((lines (split-string (concat (process-get process 'begun) text) "\n"))
         (begun (car (last lines))))
    (process-put process 'begun begun)
    (mapc #'toolhost--event (butlast lines))
    (when (> (length begun) toolhost--longest)
      (delete-process process))))

(defun toolhost--event (line)
  "Take note of the event in LINE; what is no event is an error of the program."
  (let* ((event (ignore-errors (toolhost--parse line)))
         (name (and (hash-table-p event) (toolhost--get event "event"))))
    (cond
     ((null name)
      (unless (string-empty-p line)
        (toolhost--set-state (toolhost--plain-line line))))
     ((equal name "disconnected")
      (toolhost--set-state (toolhost--get (toolhost--get event "data") "reason")))
     (t
      (when (equal name "connected")
        (setq toolhost--pause 1)
        (toolhost--set-state nil))
      (toolhost--list)))))

(defun toolhost--plain-line (text)
  "Return TEXT as one line of at most 200 harmless characters."
  (truncate-string-to-width
   (replace-regexp-in-string "[^ -~[:alnum:]]" "?" text) 200))

(defun toolhost--ended (process _)
  "Follow the events in another process after the end of PROCESS."
  (unless (process-live-p process)
    (when (eq process toolhost--events)
      (setq toolhost--events nil)
      (toolhost--again (or toolhost--state "the program that follows the host has ended")))))

(defun toolhost--set-state (why)
  "Note that the host does not answer because of WHY; nil means that it does."
  (setq toolhost--state why)
  (toolhost--refresh))

(defun toolhost--list ()
  "Ask the host which calls wait."
  (if toolhost--listing
      (setq toolhost--listing 'again)
    (setq toolhost--listing t)
    (toolhost--run
     '("approvals" "list")
     (lambda (records failure)
       (let ((again (eq toolhost--listing 'again)))
         (setq toolhost--listing nil)
         (if failure
             (message "%s" failure)
           (toolhost--note (reverse records)))
         (when again
           (toolhost--list)))))))

(defun toolhost--note (records)
  "Note that RECORDS are the approvals that wait, and show what is new."
  (let ((new (seq-remove (lambda (record) (member (toolhost--get record "id") toolhost--known))
                         records)))
    (setq toolhost--waiting records
          toolhost--known (mapcar (lambda (record) (toolhost--get record "id")) records))
    (toolhost--refresh)
    (toolhost--look-again)
    (when (and new toolhost-pop-up (not (toolhost--shows-open)))
      (toolhost--show (toolhost--get (car new) "id") #'display-buffer))))

(defun toolhost--refresh ()
  "Show what is known in the list and the mode line."
  (toolhost--set-mode-line)
  (when-let ((buffer (get-buffer "*toolhost*")))
    (with-current-buffer buffer
      (when (derived-mode-p 'toolhost-list-mode)
        (toolhost--fill-list)))))

;;;; The list

(defvar toolhost-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'toolhost-list-show)
    (define-key map "g" #'toolhost-update)
    map)
  "Keys of the list.")

(define-derived-mode toolhost-list-mode tabulated-list-mode "toolhost"
  "List of the calls that wait for approval.
\\{toolhost-list-mode-map}"
  (setq tabulated-list-format [("Tool" 24 t) ("User" 16 t) ("Until" 9 t) ("What" 0 nil)]
        tabulated-list-padding 1
        bidi-paragraph-direction 'left-to-right)
  (tabulated-list-init-header))

(defun toolhost--fill-list ()
  "Fill the list in the current buffer."
  (setq tabulated-list-entries
        (mapcar (lambda (record)
                  (list (toolhost--get record "id")
                        (vector (toolhost--plain (toolhost--get record "tool"))
                                (toolhost--plain (toolhost--get record "user"))
                                (toolhost--until record)
                                (toolhost--get record "summary")))) ; as the host shows it
                toolhost--waiting)
        mode-line-process (list (if toolhost--state ": not connected" ": connected")))
  (tabulated-list-print t)
  (when (and toolhost--state (null toolhost--waiting))
    (let ((inhibit-read-only t))
      (insert toolhost--state "\n"))))

;;;###autoload
(defun toolhost ()
  "List the calls that wait for approval, and show each new one."
  (interactive)
  (unless (process-live-p toolhost--events)
    (setq toolhost--directory
          (if (file-remote-p default-directory) (expand-file-name "~/") default-directory)))
  (toolhost--connect)
  (with-current-buffer (get-buffer-create "*toolhost*")
    (unless (derived-mode-p 'toolhost-list-mode)
      (toolhost-list-mode))
    (toolhost--fill-list)
    (pop-to-buffer (current-buffer))))

(defun toolhost-update ()
  "Ask the host again which calls wait."
  (interactive)
  (toolhost--connect)
  (toolhost--list))

(defun toolhost-stop ()
  "Follow the host no longer."
  (interactive)
  (when toolhost--retry
    (cancel-timer toolhost--retry))
  (let ((process toolhost--events))
    (setq toolhost--retry nil toolhost--events nil toolhost--pause 1
          toolhost--waiting nil toolhost--known nil toolhost--state "not connected")
    (when process
      (delete-process process)))
  (toolhost--refresh))

(defun toolhost-list-show ()
  "Show the call in this line."
  (interactive nil toolhost-list-mode)
  (toolhost--show (or (tabulated-list-get-id) (user-error "No call is here")) #'pop-to-buffer))

;;;; The mode line

(defvar toolhost-mode-line-string "" "What the mode line shows.")

;;;###autoload
(define-minor-mode toolhost-mode-line-mode
  "Show in the mode line how many calls wait for approval."
  :global t
  (setq global-mode-string
        (delq 'toolhost-mode-line-string (or global-mode-string '(""))))
  (when toolhost-mode-line-mode
    (setq global-mode-string (append global-mode-string '(toolhost-mode-line-string))))
  (toolhost--set-mode-line))

(defun toolhost--set-mode-line ()
  "Set what the mode line shows."
  (setq toolhost-mode-line-string
        (cond (toolhost--state " [toolhost: no host]")
              (toolhost--waiting (format " [toolhost: %d]" (length toolhost--waiting)))
              (t "")))
  (force-mode-line-update t))

;;;; One call

(defconst toolhost--buffer "*toolhost approval*" "The buffer that shows a call.")

(defvar-local toolhost--record nil "The approval that is shown.")
(defvar-local toolhost--asked nil "The ID of the approval that shall be shown.")
(defvar-local toolhost--since 0 "When it appeared.")
(defvar-local toolhost--seen nil "Non-nil means that all of it was on the screen.")

(defvar toolhost-approval-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'toolhost-approve)
    (define-key map "n" #'toolhost-reject)
    (define-key map "a" #'toolhost-always)
    (define-key map "?" #'toolhost-help)
    (define-key map "l" #'toolhost)
    (define-key map "g" #'toolhost-show-again)
    (define-key map (kbd "M-n") #'toolhost-next)
    (define-key map (kbd "M-p") #'toolhost-previous)
    map)
  "Keys of a call.")

(define-derived-mode toolhost-approval-mode special-mode "Approval"
  "Mode for a call that waits for approval.
\\<toolhost-approval-mode-map>
\\[toolhost-approve]	let the call run once
\\[toolhost-reject]	reject it, with a message for the model
\\[toolhost-always]	let it run, and later calls unasked
\\[toolhost-next], \\[toolhost-previous]	show the next or the previous call that waits
\\[quit-window]	leave it waiting
\\[toolhost]	list all calls that wait"
  (setq truncate-lines nil
        word-wrap nil
        bidi-paragraph-direction 'left-to-right
        header-line-format '("y approve  n reject  a always  ? help  q leave waiting" toolhost--others)))

(defvar-local toolhost--others "" "How many other calls wait, for the header.")

(defconst toolhost--kinds
  '(("fact" "" "    ... " default)
    ("heading" "" "    ... " toolhost-label)
    ("warning" "  ! " "  ! ... " warning)
    ("omission" "  ~ " "  ~ ... " warning)
    ("said" "  > " "  >\\" toolhost-said)
    ("added" "  | " "  |\\" diff-added)
    ("removed" "  | " "  |\\" diff-removed))
  "The kinds of lines: what is before the first row and the others, and the face.
Each row begins with a mark, so that no words of others look like those of
the host.")

(defun toolhost--insert (line)
  "Insert LINE, an object that the host has made for people."
  (pcase-let ((`(,first ,next ,face)
               (or (cdr (assoc (toolhost--get line "kind") toolhost--kinds))
                   '("  | " "  |\\" default)))
              (label (toolhost--get line "label"))
              (start (point)))
    (insert first)
    (when label
      (insert (propertize (format "%-9s " (concat label ":")) 'face 'toolhost-label)))
    (insert (string-replace "\n" "\\n" (toolhost--get line "text")) "\n")
    (add-text-properties start (point) (list 'wrap-prefix next))
    (add-face-text-property start (point) face t)))

(defun toolhost--show (id display)
  "Show the approval ID in its buffer, and that with the function DISPLAY."
  (with-current-buffer (get-buffer-create toolhost--buffer)
    (unless (derived-mode-p 'toolhost-approval-mode)
      (toolhost-approval-mode))
    (setq toolhost--asked id))
  (toolhost--run
   (list "approvals" "show" id "--shown")
   (lambda (record failure)
     (when-let ((buffer (get-buffer toolhost--buffer)))
       (with-current-buffer buffer
         (when (equal toolhost--asked id) ; nothing else was asked for since
           (if failure
               (message "%s" failure)
             (toolhost--fill record)
             (funcall display buffer))))))))

(defun toolhost--fill (record)
  "Show RECORD in the current buffer."
  (let ((inhibit-read-only t)
        (same (and toolhost--record
                   (equal (toolhost--get record "id") (toolhost--get toolhost--record "id"))))
        (place (point)))
    (setq toolhost--record record)
    (erase-buffer)
    (mapc #'toolhost--insert (toolhost--get (toolhost--get record "display") "lines"))
    (if same
        (goto-char (min place (point-max)))
      (setq toolhost--since (float-time)
            toolhost--seen nil)
      (goto-char (point-min))
      (dolist (window (get-buffer-window-list nil nil t))
        (set-window-point window (point-min))
        (set-window-start window (point-min))))
    (toolhost--count-others)))

(defun toolhost--count-others ()
  "Say in the header how many other calls wait."
  (let ((others (seq-remove (lambda (record) (equal (toolhost--get record "id") toolhost--asked))
                            toolhost--waiting)))
    (setq toolhost--others (if others (format "  (others wait: %d)" (length others)) ""))))

(defun toolhost--is-open (record)
  "Return non-nil if RECORD can be decided."
  (equal (toolhost--get record "state") "open"))

(defun toolhost--shows-open ()
  "Return non-nil if a window shows a call that waits."
  (when-let ((buffer (get-buffer toolhost--buffer)))
    (and (get-buffer-window buffer t)
         (member (buffer-local-value 'toolhost--asked buffer) toolhost--known))))

(defun toolhost--look-again ()
  "Show the outcome if the call that is shown waits no longer."
  (when-let ((buffer (get-buffer toolhost--buffer)))
    (with-current-buffer buffer
      (toolhost--count-others)
      (when (and toolhost--record (toolhost--is-open toolhost--record)
                 (equal toolhost--asked (toolhost--get toolhost--record "id"))
                 (not (member toolhost--asked toolhost--known)))
        (toolhost--show toolhost--asked #'toolhost--tell-outcome)))))

(defun toolhost--tell-outcome (buffer)
  "Tell what became of the call in BUFFER."
  (with-current-buffer buffer
    (unless (toolhost--is-open toolhost--record)
      (message "%s: %s%s" (toolhost--get toolhost--record "id")
               (toolhost--get toolhost--record "state")
               (if-let ((who (toolhost--get toolhost--record "decided_by")))
                   (concat " by " (toolhost--plain who))
                 "")))))

(defun toolhost-show-again ()
  "Show the call as it is now."
  (interactive nil toolhost-approval-mode)
  (toolhost--show toolhost--asked #'ignore))

(defun toolhost-help ()
  "Explain the keys."
  (interactive)
  (describe-mode))

(defun toolhost--move (step)
  "Show the waiting call STEP places after this one."
  (let ((place (or (seq-position toolhost--known toolhost--asked) (if (> step 0) -1 0))))
    (unless toolhost--known
      (user-error "No call waits"))
    (toolhost--show (nth (mod (+ place step) (length toolhost--known)) toolhost--known) #'ignore)))

(defun toolhost-next ()
  "Show the next call that waits."
  (interactive nil toolhost-approval-mode)
  (toolhost--move 1))

(defun toolhost-previous ()
  "Show the previous call that waits."
  (interactive nil toolhost-approval-mode)
  (toolhost--move -1))

;;;; Decisions

(defun toolhost--check (all)
  "Return the approval that is shown; signal an error if no key may decide it yet.
With ALL non-nil, all of it must have been on the screen."
  (cond
   ((not (and toolhost--record (toolhost--is-open toolhost--record)))
    (user-error "This call does not wait"))
   ((not (equal toolhost--asked (toolhost--get toolhost--record "id")))
    (user-error "Another call is about to appear"))
   ((< (float-time) (+ toolhost--since toolhost-guard))
    (user-error "This call has just appeared: read it first"))
   ((and all (not (toolhost--see-all)))
    (user-error "That was not all of the call: scroll to its end first")))
  toolhost--record)

(defun toolhost--see-all ()
  "Return non-nil if the end of the call was on the screen; else scroll on."
  (let ((window (get-buffer-window)))
    (when (and window (not toolhost--seen))
      (let ((rows (count-screen-lines (window-start window) (1- (point-max)) nil window))
            (height (window-body-height window)))
        (if (<= rows height)
            (setq toolhost--seen t)
          (setq toolhost--since (float-time)) ; this page is to be read, too
          (save-excursion
            (goto-char (window-start window))
            (vertical-motion (max 1 (- height 2)) window)
            (set-window-point window (point))
            (set-window-start window (point))))))
    toolhost--seen))

(defun toolhost--decide (verb record &rest flags)
  "Decide about RECORD by VERB, with FLAGS.
The answer is bound to what was shown."
  (let ((id (toolhost--get record "id"))
        (digest (toolhost--get record "preview_digest")))
    (toolhost--run
     `("approvals" ,verb ,id ,(concat "--arguments-hash=" (toolhost--get record "arguments_hash"))
       ,@(unless (member digest '(nil "")) (list (concat "--preview-digest=" digest)))
       ,@flags)
     (lambda (answer failure)
       (if failure
           (message "%s" failure)
         (setq toolhost--known (delete id toolhost--known)
               toolhost--waiting (seq-remove (lambda (other) (equal id (toolhost--get other "id")))
                                             toolhost--waiting))
         (message "%s: %s" (toolhost--get answer "state") (toolhost--get answer "summary")))
       (when-let ((buffer (get-buffer toolhost--buffer)))
         (with-current-buffer buffer
           (when (equal toolhost--asked id)
             (toolhost--show (or (and (not failure) (car toolhost--known)) id) #'ignore))))
       (toolhost--list)))))

(defun toolhost-approve ()
  "Let the call run once."
  (interactive nil toolhost-approval-mode)
  (toolhost--decide "approve" (toolhost--check t)))

(defun toolhost-reject ()
  "Reject the call, with a message for the model."
  (interactive nil toolhost-approval-mode)
  (let ((record (toolhost--check nil)))
    (toolhost--decide "reject" record
                      (concat "--message=" (read-string "Reject; message for the model: ")))))

(defun toolhost-always ()
  "Let the call run, and later calls unasked: ask which, and for how long."
  (interactive nil toolhost-approval-mode)
  (let ((record (toolhost--check t)))
    (unless (toolhost--get record "standing")
      (user-error "%s" (or (toolhost--get record "no_grant")
                           "The policy wants a person to see each such call")))
    (let ((flags (append (toolhost--read-scope) (toolhost--read-end))))
      (when (y-or-n-p (format "Let this call run, and later calls unasked (%s)? "
                              (string-join flags " ")))
        (apply #'toolhost--decide "approve" record flags)))))

(defun toolhost--read-scope ()
  "Ask which later calls are covered, and return that as flags."
  (pcase (completing-read "Later calls (tool, path, command, plugin): "
                          '("tool" "path" "command" "plugin") nil t nil nil "tool")
    ("path" (list (concat "--path=" (toolhost--read-text "Paths below: "))))
    ("command" (list (concat "--command=" (toolhost--read-text "Command, such as npm test *: "))))
    ("plugin" '("--plugin"))))

(defun toolhost--read-end ()
  "Ask until when later calls are covered, and return that as flags."
  (pcase (completing-read "Until (always, session, duration, uses): "
                          '("always" "session" "duration" "uses") nil t nil nil "always")
    ("session" '("--session"))
    ("duration" (list (concat "--for=" (toolhost--read-text "Duration, such as 8h: "))))
    ("uses" (list (concat "--uses=" (toolhost--read-text "Number of calls: "))))
    (_ '("--always"))))

(defun toolhost--read-text (prompt)
  "Ask with PROMPT for a text that is not empty."
  (let ((text (string-trim (read-string prompt))))
    (if (string-empty-p text)
        (user-error "Nothing was decided")
      text)))

;; Local Variables:
;; checkdoc-verb-check-experimental-flag: nil
;; End:

(provide 'toolhost)
;;; toolhost.el ends here
