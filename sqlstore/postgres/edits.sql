-- Editable returns the data of a row that decide whether its body may be replaced, and the current
-- body.

-- name: editable
select i.surrogate::int, (i.steps is not null)::int, i.payload, i.id, i.long_id,
  s.consumer, s.source, i.envelope
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope where i.number = $1;

-- name: edit row
update {prefix}inbox set payload = $1, revision = revision + 1, changed_at = greatest(changed_at, clock_timestamp())
where number = $2 and revision = $3;

-- name: retype row
update {prefix}inbox set envelope = $1, type = $2 where number = $3 and revision = $4;

-- name: keep edit
insert into {prefix}edits ("row", number, at, who, body, body_sum, body_size, sum, size)
select $1, coalesce(max(e.number), 0) + 1, clock_timestamp(), $2, $3, $4, $5, $6, $7
from {prefix}edits e where e."row" = $1;

-- name: edits
select e.number, (extract(epoch from e.at) * 1000)::bigint, e.who, e.body is null, case when $2::boolean then e.body end,
  e.body_sum, e.body_size, e.sum, e.size, i.id, i.long_id, s.consumer, s.source, i.envelope
from {prefix}edits e join {prefix}inbox i on i.number = e."row" left join {prefix}scopes s on s.number = i.scope
where e."row" = $1 order by e.number;
