/** The limits of account `a` that are its own; null without any. */
export const OVERRIDES = `(SELECT jsonb_object_agg(l.name, l.value) FROM account_limits l WHERE l.account_id = a.id) AS overrides`;
