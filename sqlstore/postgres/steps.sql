-- Steps are written after the ends of their claims, in the same transaction. This transaction has
-- already locked the rows: if a claim was no longer held, the statement that ends the claims has
-- failed. s are the steps of row n. If a is true, the attempts of the row are counted from zero
-- again.

-- name: claim steps
update {prefix}inbox i set steps = c.s,
  started = case when c.a then 0 else i.started end, finished = case when c.a then 0 else i.finished end
from jsonb_to_recordset($1::text::jsonb) c (n bigint, s text, a boolean)
where i.number = c.n and c.n > 0;
