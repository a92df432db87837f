-- Steps are written after the ends of their claims in the same transaction, which has the
-- rows by then: an end of a claim that does not stand has failed before. s are the steps of
-- row n, and a says that its attempts begin anew.

-- name: claim steps
update {prefix}inbox i set steps = c.s,
  started = case when c.a then 0 else i.started end, finished = case when c.a then 0 else i.finished end
from jsonb_to_recordset($1::text::jsonb) c (n bigint, s text, a boolean)
where i.number = c.n and c.n > 0;
