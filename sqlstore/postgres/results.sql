-- name: keep result
insert into {prefix}results (scope, id, result) values ($1, $2, $3)
on conflict (scope, id) do update set result = excluded.result;

-- name: results
select a.number, r.result
from unnest($1::bigint[], $2::bigint[], $3::bytea[]) a (number, scope, id)
join {prefix}results r on r.scope = a.scope and r.id = a.id
where a.number between 0 and 1000000;
