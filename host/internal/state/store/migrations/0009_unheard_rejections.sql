-- Whether no call has been told of the record's rejection: then the next call like it is.
ALTER TABLE approvals ADD COLUMN unheard INTEGER NOT NULL DEFAULT 0;
