import { query } from './query.js';

/**
 * The schema of a database, one sorted line for each column, constraint, index, function, trigger and extension. The order of the
 * columns does not count, and neither do the tables of the migrations.
 */
export async function catalogOf(url: string): Promise<string[]> {
  const rows = await query<{ line: string }>(
    url,
    `WITH tables AS (
       SELECT oid, relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'migrations')
     SELECT concat_ws(' ', 'column', relname, attname, format_type(atttypid, atttypmod), attidentity, attgenerated,
                      CASE WHEN attnotnull THEN 'not null' END, pg_get_expr(adbin, adrelid)) AS line
       FROM tables t JOIN pg_attribute a ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped
       LEFT JOIN pg_attrdef ON adrelid = t.oid AND adnum = attnum
     UNION ALL
     SELECT concat_ws(' ', 'constraint', relname, conname, pg_get_constraintdef(c.oid))
       FROM tables t JOIN pg_constraint c ON conrelid = t.oid WHERE contype <> 'n'
     UNION ALL
     SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid)) FROM tables t JOIN pg_index ON indrelid = t.oid
     UNION ALL
     SELECT concat_ws(' ', 'trigger', relname, pg_get_triggerdef(g.oid))
       FROM tables t JOIN pg_trigger g ON tgrelid = t.oid WHERE NOT tgisinternal
     UNION ALL
     SELECT concat_ws(' ', 'function', regexp_replace(pg_get_functiondef(p.oid), '\\s+', ' ', 'g'))
       FROM pg_proc p WHERE pronamespace = 'public'::regnamespace AND NOT EXISTS (
         SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
     UNION ALL
     SELECT concat_ws(' ', 'extension', extname) FROM pg_extension
     UNION ALL
     SELECT concat_ws(' ', 'partitioned', relname, pg_get_partkeydef(oid)) FROM tables WHERE pg_get_partkeydef(oid) IS NOT NULL`,
  );
  return rows.map(({ line }) => line).sort();
}
