;;; toolhost-test.el --- Tests of toolhost.el with a real host  -*- lexical-binding: t; -*-

;;; Commentary:

;; host/emacs_test.go runs these tests.  TOOLHOST_PROGRAM is the program, and
;; TOOLHOST_CONFIG a configuration with the plugin probe, whose tool probe_count
;; asks for approval.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'toolhost)

(defconst toolhost-test--program (getenv "TOOLHOST_PROGRAM") "The program.")

(defconst toolhost-test--patience 60 "How many seconds to wait for what must happen.")

(defvar toolhost-test--said nil "The messages that were shown, the newest first.")

(advice-add 'message :before
            (lambda (format &rest args)
              (when format
                (push (apply #'format format args) toolhost-test--said))))

(defun toolhost-test--until (what happens)
  "Wait until the function HAPPENS returns non-nil; WHAT describes that."
  (let ((value nil) (end (+ (float-time) toolhost-test--patience)))
    (while (not (setq value (funcall happens)))
      (when (> (float-time) end)
        (ert-fail (list "did not happen" what toolhost--state toolhost-test--said
                        (toolhost-test--text))))
      (accept-process-output nil 0.05))
    value))

(defun toolhost-test--text ()
  "Return what the approval buffer shows."
  (if-let ((buffer (get-buffer toolhost--buffer)))
      (with-current-buffer buffer (buffer-substring-no-properties (point-min) (point-max)))
    ""))

(defun toolhost-test--shows (&rest texts)
  "Wait until the approval buffer shows TEXTS."
  (dolist (text texts)
    (toolhost-test--until text (lambda () (string-search text (toolhost-test--text))))))

(defun toolhost-test--says (text)
  "Wait until TEXT is in a message."
  (toolhost-test--until text (lambda () (seq-some (lambda (said) (string-search text said))
                                                  toolhost-test--said))))

(defun toolhost-test--run (&rest args)
  "Start the program with ARGS and return its process, whose buffer gets the output."
  (make-process :name "test" :command (cons toolhost-test--program args) :connection-type 'pipe
                :buffer (generate-new-buffer " *test*") :noquery t :sentinel #'ignore))

(defvar toolhost-test--calls nil "The processes of calls.")

(defun toolhost-test--call (note)
  "Begin a call of probe_count with NOTE, and return its process."
  (let ((call (toolhost-test--run "call" "probe_count" (json-serialize (list :note note)))))
    (push call toolhost-test--calls)
    call))

(defun toolhost-test--output (process)
  "Return the output of PROCESS after its end."
  (toolhost-test--until "the end of a program" (lambda () (not (process-live-p process))))
  (while (accept-process-output process))
  (with-current-buffer (process-buffer process) (buffer-string)))

(defun toolhost-test--decide (&rest args)
  "Decide with the command line by ARGS, as another person would."
  (should (string-search "\"id\"" (toolhost-test--output
                                   (toolhost-test--run "approvals" "show" (cadr args) "--json"))))
  (toolhost-test--output (apply #'toolhost-test--run "approvals" args)))

(defun toolhost-test--select ()
  "Select the window of the approval buffer, as a person who wants to decide."
  (select-window (get-buffer-window toolhost--buffer))
  (delete-other-windows))

(defun toolhost-test--press (keys)
  "Press KEYS in the window of the approval buffer."
  (toolhost-test--select)
  (execute-kbd-macro (kbd keys)))

(defun toolhost-test--refuses (key why)
  "Press KEY in the approval buffer, which is refused because of WHY."
  (toolhost-test--select)
  (let ((failure (should-error (call-interactively (key-binding (kbd key))) :type 'user-error)))
    (should (string-search why (cadr failure)))))

(defvar toolhost-test--host nil "The process of the host.")

(defun toolhost-test--kill ()
  "Kill the host and wait for its end."
  (signal-process toolhost-test--host 'SIGKILL)
  (toolhost-test--until "the end of the host" (lambda () (not (process-live-p toolhost-test--host)))))

(defun toolhost-test--connected ()
  "Wait until the host answers."
  (toolhost-test--until "a connection" (lambda () (null toolhost--state))))

(defmacro toolhost-test--with-host (&rest body)
  "Run BODY while a host runs and `toolhost' follows it."
  `(let ((toolhost-command (list toolhost-test--program))
         (toolhost-guard 0)
         (toolhost-test--said nil)
         (toolhost-test--calls nil)
         (toolhost-test--host (toolhost-test--run "serve" "--log-level" "error")))
     (delete-other-windows)
     (unwind-protect
         (progn
           (toolhost)
           (toolhost-test--connected)
           ,@body)
       (unwind-protect
           (progn
             (dolist (record toolhost--waiting) ; the next test shall not see it
               (toolhost--decide "reject" record))
             (toolhost-test--until "no call" (lambda () (null toolhost--waiting))))
         (toolhost-stop)
         (mapc #'delete-process toolhost-test--calls)
         (toolhost-test--kill))
       (dolist (name (list toolhost--buffer "*toolhost*"))
         (when (get-buffer name)
           (kill-buffer name))))))

(defun toolhost-test--asked ()
  "Return the ID of the approval that is shown."
  (buffer-local-value 'toolhost--asked (get-buffer toolhost--buffer)))

(ert-deftest toolhost-test-approve ()
  "A call appears without taking the focus, and y lets it run."
  (toolhost-test--with-host
   (toolhost-mode-line-mode 1)
   (let ((call (toolhost-test--call "first")))
     (toolhost-test--shows "Tool:     probe_count" "State:    open" "  |   \"note\": \"first\"")
     (should-not (equal (buffer-name (window-buffer)) toolhost--buffer))
     (should (equal toolhost-mode-line-string " [toolhost: 1]"))
     (with-current-buffer "*toolhost*"
       (should (string-search "probe_count" (buffer-string)))
       (should (string-search ": connected" (car mode-line-process))))
     (toolhost-test--press "y")
     (should (string-match-p "counted\\|^[0-9]" (toolhost-test--output call)))
     (toolhost-test--says "approved: ")
     (toolhost-test--until "the mode line" (lambda () (equal toolhost-mode-line-string "")))
     (toolhost-test--shows "State:    spent" "Decision:"))
   (toolhost-mode-line-mode -1)))

(ert-deftest toolhost-test-reject ()
  "The key n asks for a message, which the caller reads."
  (toolhost-test--with-host
   (let ((call (toolhost-test--call "wrong")))
     (toolhost-test--shows "\"wrong\"")
     (toolhost-test--press "n --no SPC such SPC file RET")
     (should (string-search "User rejected the operation: --no such file"
                            (toolhost-test--output call))))))

(ert-deftest toolhost-test-always ()
  "The key a asks which later calls run unasked, and for how long."
  (toolhost-test--with-host
   (let ((call (toolhost-test--call "granted")))
     (toolhost-test--shows "\"granted\"")
     (toolhost-test--press "a path RET /etc RET uses RET 1 RET y")
     (toolhost-test--says "names no path") ; the host's answer
     (toolhost-test--press "a tool RET session RET y")
     (toolhost-test--says "session")
     (toolhost-test--press "a RET uses RET 1 RET n") ; not sure after all
     (toolhost-test--press "a RET duration RET 1h RET y")
     (toolhost-test--output call)
     (toolhost-test--says "approved: ")
     (should-not (string-search "waits" (toolhost-test--output (toolhost-test--call "unasked"))))
     (let ((grants (toolhost-test--output (toolhost-test--run "grants" "list"))))
       (should (string-match "gr_[^ ]+" grants))
       (should-not (string-search "always" grants))
       (toolhost-test--output (toolhost-test--run "grants" "revoke" (match-string 0 grants)))))))

(ert-deftest toolhost-test-several ()
  "Several calls wait: M-n and M-p move, and after a decision the next appears."
  (toolhost-test--with-host
   (let ((one (toolhost-test--call "one")) (two nil))
     (toolhost-test--shows "\"one\"")
     (setq two (toolhost-test--call "two"))
     (toolhost-test--until "two calls" (lambda () (equal (length toolhost--waiting) 2)))
     (should (string-search "\"one\"" (toolhost-test--text))) ; it stays
     (with-current-buffer toolhost--buffer
       (should (string-search "others wait: 1" (format "%s%s" header-line-format toolhost--others))))
     (toolhost-test--press "M-n")
     (toolhost-test--shows "\"two\"")
     (toolhost-test--press "M-p")
     (toolhost-test--shows "\"one\"")
     (let ((toolhost-guard 3600))
       (toolhost-test--refuses "y" "has just appeared"))
     (toolhost-test--press "y")
     (toolhost-test--output one)
     (toolhost-test--shows "\"two\"")
     (toolhost-test--press "n RET")
     (should (string-search "rejected" (toolhost-test--output two)))
     (toolhost-test--shows "State:    rejected")
     (toolhost-test--refuses "y" "does not wait")
     (toolhost-test--until "no call" (lambda () (null toolhost--waiting)))
     (toolhost-test--refuses "M-n" "No call waits"))))

(ert-deftest toolhost-test-elsewhere ()
  "A call that was decided elsewhere is not decided again, and the buffer says so."
  (toolhost-test--with-host
   (let ((call (toolhost-test--call "elsewhere")))
     (toolhost-test--shows "\"elsewhere\"")
     (let ((record (buffer-local-value 'toolhost--record (get-buffer toolhost--buffer))))
       (toolhost-test--decide "reject" (toolhost-test--asked) "--message" "not this one")
       (should (string-search "not this one" (toolhost-test--output call)))
       (toolhost-test--shows "State:    rejected" "Message:  not this one")
       (toolhost-test--says ": rejected by ")
       ;; the answer of a person who had not seen that yet
       (setq toolhost-test--said nil)
       (with-current-buffer toolhost--buffer
         (toolhost--decide "approve" record))
       (toolhost-test--says "rejected")))))

(ert-deftest toolhost-test-bound ()
  "An answer about something else than the call is refused."
  (toolhost-test--with-host
   (let ((call (toolhost-test--call "bound")))
     (toolhost-test--shows "\"bound\"")
     (with-current-buffer toolhost--buffer
       (let ((shown (copy-hash-table toolhost--record)))
         (puthash "arguments_hash" (concat "sha256:" (make-string 64 ?0)) shown)
         (toolhost--decide "approve" shown)))
     (toolhost-test--says "toolhost: ")
     (toolhost-test--shows "State:    open")
     (toolhost-test--press "n RET")
     (toolhost-test--output call))))

(ert-deftest toolhost-test-killed ()
  "A host is killed and another one started: what waits is shown again."
  (toolhost-test--with-host
   (let ((call (toolhost-test--call "before")))
     (toolhost-test--shows "\"before\"")
     (toolhost-test--kill)
     (delete-process call) ; else it becomes the host
     (toolhost-test--until "that no host runs" (lambda () toolhost--state))
     (should (equal toolhost-mode-line-string " [toolhost: no host]"))
     (setq toolhost-test--host (toolhost-test--run "serve" "--log-level" "error"))
     (toolhost-test--connected)
     (setq call (toolhost-test--call "after"))
     (toolhost-test--until "the call and the one before" (lambda () (= (length toolhost--known) 2)))
     (toolhost-test--press "M-n")
     (toolhost-test--shows "\"after\"")
     (toolhost-test--press "y")
     (toolhost-test--output call)
     (toolhost-test--says "approved: "))))

(ert-deftest toolhost-test-follower-killed ()
  "The program that follows is killed: another one follows."
  (toolhost-test--with-host
   (let ((first toolhost--events))
     (signal-process first 'SIGKILL)
     (toolhost-test--until "another program"
                           (lambda () (and toolhost--events (not (eq first toolhost--events)))))
     (toolhost-test--connected))))

(ert-deftest toolhost-test-hostile ()
  "What an agent writes is text: no line of its own, no property, no control character."
  (toolhost-test--with-host
   (let* ((note (concat "a\nTool:     harmless\n" (string ?\e) "[2J" (string #x202e) "x" (string 0 7 127)
                        "#(\"t\" 0 1 (display \"u\"))\n;; Local\sVariables:\n;; eval: (kill-emacs 9)\n;; End:\n"
                        (string-join (mapcar #'number-to-string (number-sequence 1 200)) "\n")))
          (call (toolhost-test--call note)))
     (toolhost-test--shows "\\u001b[2J" "\\u202e" "(display" "eval: (kill-emacs 9)")
     (with-current-buffer toolhost--buffer
       (should-not (string-match-p "^Tool:     harmless" (buffer-string)))
       (should-not (string-match-p "[[:cntrl:]]" (string-replace "\n" "" (toolhost-test--text))))
       (should-not (string-search (string #x202e) (buffer-string)))
       (should buffer-read-only)
       (let ((place (point-min)))
         (while (< place (point-max))
           (should-not (seq-difference (cl-loop for (key) on (text-properties-at place) by #'cddr
                                                collect key)
                                       '(face wrap-prefix)))
           (setq place (next-property-change place nil (point-max))))))
     (toolhost-test--refuses "y" "not all of the call")
     (let ((pages 1))
       (while (not (ignore-errors (toolhost-approve) t))
         (should (< (setq pages (1+ pages)) 30)))
       (should (> pages 5)))
     (toolhost-test--output call)
     (toolhost-test--says "approved: "))))

(ert-deftest toolhost-test-no-program ()
  "Without the program, the list says so, and pauses grow."
  (let ((toolhost-command '("/nonexistent/toolhost")) (toolhost--pause 1))
    (unwind-protect
        (progn
          (toolhost)
          (should (string-search "/nonexistent/toolhost" toolhost--state))
          (should (equal toolhost--pause 2))
          (with-current-buffer "*toolhost*"
            (should (string-search "/nonexistent/toolhost" (buffer-string)))))
      (toolhost-stop)
      (kill-buffer "*toolhost*"))))

(provide 'toolhost-test)
;;; toolhost-test.el ends here
