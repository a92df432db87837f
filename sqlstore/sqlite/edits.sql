-- Editable returns the data of a row that decide whether its body may be replaced, and the current
-- body.

-- name: editable
select i.surrogate, i.steps is not null, i.payload, i.id, i.long_id,
  s.consumer, s.source, i.envelope
from {prefix}inbox i left join {prefix}scopes s on s.number = i.scope where i.number = ?;

-- name: edit row
update {prefix}inbox set payload = ?, revision = revision + 1, changed_at = max(changed_at, cast(unixepoch('subsec') * 1000 as integer))
where number = ? and revision = ?;

-- name: retype row
update {prefix}inbox set envelope = ?, type = ? where number = ? and revision = ?;

-- name: keep edit
insert into {prefix}edits (row, number, at, who, body, body_sum, body_size, sum, size)
select ?1, coalesce(max(e.number), 0) + 1, cast(unixepoch('subsec') * 1000 as integer), ?2, ?3, ?4, ?5, ?6, ?7
from {prefix}edits e where e.row = ?1;

-- The body of an edit is removed with the body of its row, and an edit is removed with its row.
-- This also works if foreign keys are off, or if an earlier release has removed the row.

-- name: forget edit bodies
update {prefix}edits set body = null where body is not null
  and row in (select e.row from {prefix}edits e join {prefix}inbox i on i.number = e.row where i.body_removed_at is not null);

-- name: forget edits
delete from {prefix}edits where row not in (select i.number from {prefix}inbox i join {prefix}edits e on e.row = i.number);

-- name: edits
select e.number, e.at, e.who, e.body is null, case when ?2 then e.body end, e.body_sum, e.body_size, e.sum, e.size,
  i.id, i.long_id, s.consumer, s.source, i.envelope
from {prefix}edits e join {prefix}inbox i on i.number = e.row left join {prefix}scopes s on s.number = i.scope
where e.row = ?1 order by e.number;
