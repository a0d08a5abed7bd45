/** The registry beyond the specification: lists, settings, secrets, icons, and reading without a key. */
export const servers = [
  // GET /servers
  'server:list:shape | Field | `GET /servers` answers `{servers, pagination}` with all members of a server in a list.',
  'server:list:page | Field | Pages of servers contain each server once, the most used first, and a page past the end is an empty 200.',
  'server:list:seed | Field | `seed` shuffles a list of servers in an order that is the same on every page.',
  'server:list:filters | Field | A list of servers contains only those that match every filter.',
  'server:list:unlisted | Field | Only its owner sees an unlisted server in lists, with a filter for the own namespace or account.',
  'server:list:fields | Field | `fields` selects the members of servers.',
  'server:list:namespace-only | Field | A namespace-only server is listed and found with an empty `slug`.',
  'server:search:ranked | Field | `q` ranks matches by place: name, display name, description, names of tools.',
  'namespace:list:fields | Field | `fields` selects the members of namespaces.',

  // Settings
  'server:update:changes | Field | `PATCH /servers/{qualifiedName}` changes the given members and keeps the others; null clears.',
  'server:update:invalid | Field | A PATCH with an invalid value answers 400 `{error}` and changes nothing; URLs are http or https.',
  "server:update:foreign | Field | Changing, moving or giving an icon to another owner's server answers 403 and changes nothing.",
  'server:transfer:moved | Field | `POST …/transfer` moves a server with everything it owns to another namespace of the caller, under `targetSlug` or its name.',
  "server:transfer:refused | Field | A server cannot be moved to a missing or foreign namespace (404, 403) or onto another server's name (409).",
  'server:domain:managed | Field | Every server has one domain, `managed`, whose `url` is its run endpoint and which its owner can rename.',
  "server:domain:taken | Field | A subdomain of another server, or one with the name of another owner's namespace, answers 409.",
  'server:secret:never-returned | Field | Secrets are listed by name; their values are in no answer and encrypted in the database.',
  'server:secret:set | Field | PUT of a secret creates or replaces it; DELETE removes it.',
  'server:owner-only | Field | Secrets and domains of a foreign server answer 404 `{error: "Server not found"}`, as of a missing one.',

  // Icons
  'icon:upload:kept | Field | `PUT …/icon` stores one PNG, JPEG, GIF, WebP or SVG image of a form; its bytes alone determine the type.',
  'icon:upload:refused | Field | An upload of another type, without a file or with several files answers 400 `{error}` and keeps the old icon.',
  'icon:delete | Field | `DELETE …/icon` removes the icon; without one it answers 404.',

  // Reading without a key
  'public-reads:on | Field | With `PUBLIC_READS=true` servers and icons can be read without a key, also with an empty bearer.',
  'public-reads:wrong-key | Field | A wrong key is refused also on routes that need no key.',
];
