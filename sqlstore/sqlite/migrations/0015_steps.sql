-- Steps: those of a message that have taken effect, as JSON, [{"name":…,"output":…}], with
-- outputs in base64; null if none has.
alter table {prefix}inbox add column steps text;
