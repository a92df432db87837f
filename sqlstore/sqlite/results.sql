-- name: keep result
insert into {prefix}results (scope, id, result) values (?, ?, ?)
on conflict (scope, id) do update set result = excluded.result;

-- name: results
with asked (number, scope, id) as (values {list:(?, ?, ?)})
select asked.number, r.result
from asked cross join {prefix}results r on r.scope = asked.scope and r.id = asked.id;

-- name: remove result
delete from {prefix}results where scope = ? and id = ?;
