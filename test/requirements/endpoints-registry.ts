import type { Requirement } from '../requirements.js';

/** Spec 4.1 and 4.6 to 4.14: servers, releases, schemas, logs, icons, namespaces and skills. */
export const registryEndpoints = {
  // Spec 4.1: create a server
  'server:create:deprecated-route': {
    source: 'Spec 4.1, Field',
    behavior:
      '`PUT /namespaces/{namespace}/servers/{server}` answers 201 with the server record, its address in `Location`, and its successor in `Link` beside `Deprecation`.',
  },
  'server:create:replacement': {
    source: 'Spec 4.1, Field',
    behavior: '`PUT /servers/{qualifiedName}` takes the same body and answers 201 with the same record.',
  },
  'server:create:namespace-only': {
    source: 'Spec 4.1, Field',
    behavior: '`PUT /servers/{namespace}` creates the namespace-only server.',
  },
  'server:create:idempotent': {
    source: 'Spec 4.1',
    behavior:
      'Repeating the PUT by either route answers 201 with the same record and `createdAt`, and creates no second server.',
  },
  'server:create:repeat-changes-nothing': {
    source: 'Spec 4.1, House',
    behavior: 'A PUT of an existing server with another displayName or description leaves the stored ones.',
  },
  'server:create:body-optional': {
    source: 'Spec 4.1, Field',
    behavior: 'Neither body field is required, nor is the body itself.',
  },
  'server:create:body-types': {
    source: 'Spec 4.1',
    behavior: 'A `displayName` or `description` that is neither null nor a string answers 400 `{error}`.',
  },
  'server:create:unknown-key': { source: 'House', behavior: 'Unknown keys in the body are dropped.' },
  'server:create:name-invalid': {
    source: 'Spec 4.1, Field',
    behavior: 'A server name outside 3 to 39 letters, digits, `_` and `-`, alphanumeric first, answers 400 `{error}`.',
  },
  'server:create:name-reserved': {
    source: 'House',
    behavior:
      'A server cannot have the name of a sub-resource of servers (`releases`, `logs`, `icon`, …): 400 `{error}`.',
  },
  'server:create:foreign': {
    source: 'Spec 4.1, 5, 7',
    behavior:
      "Creating in another owner's namespace, by either route, answers 403 `Forbidden: You don't own this server` and creates nothing.",
  },
  'server:create:namespace-missing': {
    source: 'Spec 4.1, Field',
    behavior: 'Creating in a namespace that does not exist answers 404 `{error: "Namespace not found"}`.',
  },

  // Spec 4.6: list releases
  'release:current': {
    source: 'House',
    behavior:
      '`isCurrent` of a release and `currentReleaseId` of its server name the release that calls reach, and the log of a promoted release says which key promoted it.',
  },
  'release:last-error': {
    source: 'House',
    behavior: 'A release that failed has the last error of its log in `lastError`, in lists too; others have none.',
  },
  'release:list:order': {
    source: 'Spec 1, 4.6',
    behavior: '`GET /servers/{qualifiedName}/releases` lists the releases most recent first.',
  },
  'release:list:shape': {
    source: 'Spec 4.6',
    behavior:
      'The answer is `{releases, pagination}` with the integers currentPage, pageSize, totalPages and totalCount.',
  },
  'release:list:page': {
    source: 'Spec 4.6, 8',
    behavior: '`page` accepts the integers 1 to 9007199254740991 and defaults to 1; others answer 400 `{error}`.',
  },
  'release:list:page-size': {
    source: 'Spec 4.6, 8',
    behavior: '`pageSize` accepts the integers 1 to 100 and defaults to 20; others answer 400 `{error}`.',
  },
  'release:list:past-end': {
    source: 'Spec 4.6, Field',
    behavior: 'A page past the end, up to the highest number allowed, answers 200 with no releases.',
  },
  'release:list:not-found': {
    source: 'Spec 4.6, 7',
    behavior: 'Listing the releases of an unknown or foreign server answers 404 `{error: "Server not found"}`.',
  },

  // Spec 4.7: resume a release
  'release:resume:answer': {
    source: 'Spec 3, 4.7',
    behavior:
      '`POST …/releases/{id}/resume` without a body answers 202 `{status: "WORKING", deploymentId}` with a UUID.',
  },
  'release:resume:latest': {
    source: 'Spec 3, 4.7',
    behavior: 'The id `latest` means the most recent release.',
  },
  'release:resume:not-found': {
    source: 'Spec 4.7, 7',
    behavior: 'Resuming a release of an unknown or foreign server answers 404 `{error: "Server not found"}`.',
  },
  'release:resume:unknown-id': {
    source: 'Spec 4.7, Field',
    behavior: 'Resuming a release that the server does not have answers 404 `{error}`.',
  },

  // Spec 4.8: infer a tool output schema
  'output-schema:answer': {
    source: 'Spec 1, 4.8',
    behavior:
      '`GET …/experimental/tools/{toolName}/output-schema` answers 200 with the schema inferred from recent tool outputs.',
  },
  'output-schema:successful-only': {
    source: 'Spec 1, 4.8',
    behavior: 'Results of failed tool calls are not samples.',
  },
  'output-schema:no-samples': {
    source: 'Spec 4.8, 7',
    behavior: 'A tool without samples answers 404 `{error: "No output samples found"}`.',
  },
  'output-schema:owner-only': {
    source: 'House',
    behavior: 'Only the owner of a server reads the inferred schemas of its tools: for others the server is not found.',
  },
  'output-schema:recent': {
    source: 'Spec 1, 4.8',
    behavior: 'Results count for four to five weeks, whatever was released meanwhile, and are then deleted.',
  },
  'output-schema:processes': {
    source: 'House',
    behavior: 'Results that several processes sample at the same time all count.',
  },
  'output-schema:bounded': {
    source: 'House',
    behavior: 'Samples, buffers and stored shapes of a server and its tools are bounded, and sampling delays no call.',
  },
  'output-schema:for-mocks': {
    source: 'House',
    behavior: 'The schema for simulated results omits fields with fewer than 3 samples, and is null without objects.',
  },

  // Spec 4.9: list runtime logs
  'logs:list:shape': {
    source: 'Spec 4.9',
    behavior: '`GET /servers/{qualifiedName}/logs` answers 200 `{invocations, total}`, newest first.',
  },
  'logs:list:grouped': {
    source: 'Spec 1, 4.9',
    behavior: 'An invocation contains all its log lines and exceptions.',
  },
  'logs:list:from': {
    source: 'Spec 4.9',
    behavior: '`from` (ISO 8601) excludes earlier invocations.',
  },
  'logs:list:to': {
    source: 'Spec 4.9',
    behavior: '`to` (ISO 8601) excludes invocations at and after it.',
  },
  'logs:list:time-invalid': {
    source: 'Spec 4.9, House',
    behavior: 'A `from` or `to` that is not a timestamp answers 400 `{error}`.',
  },
  'logs:list:limit': {
    source: 'Spec 4.9, 8',
    behavior: '`limit` accepts the integers 1 to 100 and defaults to 20; others answer 400 `{error}`.',
  },
  'logs:list:search': {
    source: 'Spec 4.9',
    behavior: '`search` returns only the invocations with that text in a log message.',
  },
  'logs:list:total': {
    source: 'Spec 4.9, Field',
    behavior: '`total` is the integer number of invocations that match, not of those returned.',
  },
  'logs:list:not-found': {
    source: 'Spec 4.9, 7',
    behavior: 'The logs of an unknown server answer 404 `{error: "Server not found"}`.',
  },

  // Spec 4.10: get a server
  'server:get:found': {
    source: 'Spec 4.10',
    behavior: '`GET /servers/{qualifiedName}` answers 200 with the server detail.',
  },
  'server:get:current-release': {
    source: 'Spec 4.10',
    behavior: 'The detail carries connections, tools and security status of the current release.',
  },
  'server:get:not-found': {
    source: 'Spec 4.10, 7',
    behavior: 'Getting an unknown server answers 404 `{error: "Server not found"}`.',
  },
  'server:get:any-key': { source: 'House', behavior: 'Any valid key reads the detail of any server.' },

  // Spec 4.11: delete a server
  'server:delete:deleted': {
    source: 'Spec 4.11',
    behavior:
      '`DELETE /servers/{qualifiedName}` answers 200 `{success: true, namespace, server}` and deletes the server permanently.',
  },
  'server:delete:namespace-only': {
    source: 'Spec 4.11, Field',
    behavior:
      'Deleting a namespace-only server answers with `server: ""` and keeps the other servers of the namespace.',
  },
  'server:delete:cascades': {
    source: 'Spec 4.11',
    behavior: 'Deleting a server deletes its releases and associated resources.',
  },
  'server:delete:not-found': {
    source: 'Spec 4.11, 7',
    behavior: 'Deleting an unknown or already deleted server answers 404 `{error: "Server not found"}`.',
  },
  'server:delete:foreign': {
    source: 'Spec 4.11, Field',
    behavior: "Deleting another owner's server has exactly the answer of a missing one and deletes nothing.",
  },

  // Spec 4.12: server icon
  'icon:get:image': {
    source: 'Spec 1, 4.12',
    behavior: '`GET /servers/{qualifiedName}/icon` answers the image bytes with the content type of the image.',
  },
  'icon:get:too-large': {
    source: 'Spec 4.12, 7',
    behavior: 'An icon over the size limit answers 413 `{error: "File too large"}`.',
  },
  'icon:get:none': {
    source: 'Spec 4.12, House',
    behavior: 'A server without an icon answers 404 `{error: "Icon not found"}`.',
  },

  // Spec 4.13: delete a namespace
  'namespace:delete:deleted': {
    source: 'Spec 4.13',
    behavior: '`DELETE /namespaces/{name}` answers 200 `{success: true, name}` and the name can be claimed again.',
  },
  'namespace:delete:holds-servers': {
    source: 'Spec 4.13, 8',
    behavior: 'A namespace that holds a server answers 409 `{error}` and keeps everything in it.',
  },
  'namespace:delete:cascades-connections': {
    source: 'Spec 4.13',
    behavior: 'Deleting a namespace deletes its connections: a namespace claimed under the same name has none.',
  },
  'namespace:delete:cascades-skills': {
    source: 'Spec 4.13',
    behavior: 'Deleting a namespace deletes its skills.',
  },
  'namespace:delete:foreign': {
    source: 'Spec 4.13, 5',
    behavior: 'Deleting another owner\'s namespace answers 403 `{error: "Unauthorized"}` and deletes nothing.',
  },
  'namespace:delete:no-key': {
    source: 'Spec 4.13, 7',
    behavior: 'Deleting a namespace without a valid key answers 401 `{error: "Unauthorized"}`.',
  },
  'namespace:delete:not-found': {
    source: 'Spec 4.13, Field',
    behavior: 'Deleting a namespace that does not exist answers 404 `{error: "Namespace not found"}`.',
  },
  'namespace:delete:race': {
    source: 'House',
    behavior:
      'A namespace that is deleted while servers are created in it is either deleted without them or kept with all: no orphan, no 500.',
  },

  // Spec 4.14: delete a skill
  'skill:delete:deleted': {
    source: 'Spec 1, 4.14',
    behavior: '`DELETE /skills/{namespace}/{slug}` answers 200 `{success: true, qualifiedName}` and deletes the skill.',
  },
  'skill:delete:foreign': {
    source: 'Spec 4.14, 5',
    behavior: "Deleting a skill in another owner's namespace is refused with a string `error` and deletes nothing.",
  },
  'skill:delete:not-found': {
    source: 'Spec 4.14, 7',
    behavior: 'Deleting an unknown skill answers 404 with a string in `error`.',
  },

  // Publishing, finding and installing skills: our own promises where the contract is silent
  'skill:publish:git': {
    source: 'Field',
    behavior:
      '`PUT /skills/{namespace}/{slug}` with a `gitUrl` fetches the repository and answers 201 for a new skill, 200 for a replaced one.',
  },
  'skill:publish:git-guarded': {
    source: 'House',
    behavior:
      'A repository is fetched only from allowed addresses, also after redirects, and up to 25 MB and five redirects.',
  },
  'skill:publish:git-conflict': {
    source: 'Field',
    behavior: 'A folder of a repository that another skill uses answers 409 with the code `GIT_URL_CONFLICT`.',
  },
  'skill:publish:upload': {
    source: 'Field',
    behavior:
      "`PUT /skills/{namespace}/{slug}/upload` accepts a zip of the skill's folder, or of its contents, in the part `archive`.",
  },
  'skill:publish:skill-md': {
    source: 'Field',
    behavior:
      'A SKILL.md without a valid name and description in its front matter is refused with 422, the code `INVALID_SKILL_MD` and the required change.',
  },
  'skill:publish:hostile-archive': {
    source: 'House',
    behavior:
      'A publication replaces all files of the skill or none. A zip with path traversal, links, decompression bombs, too many or encrypted files is refused with 4xx.',
  },
  'skill:publish:error-shape': {
    source: 'Field',
    behavior: 'Every error of publishing a skill is `{error, code}`, both strings.',
  },
  'skill:read:record': {
    source: 'Field',
    behavior: 'A skill has every field that published clients read, and a list of skills has its pagination.',
  },
  'skill:read:search': {
    source: 'Field',
    behavior:
      'A search finds skills by words of slug, name and description, tolerates typos, and lists the best match first.',
  },
  'skill:read:anonymous': {
    source: 'Field',
    behavior: 'Skills can be read without a key only with `PUBLIC_READS=true`, and never with a wrong key.',
  },
  'skill:download:same-bytes': {
    source: 'House',
    behavior: 'The zip of an unchanged skill has the same bytes, and a matching `If-None-Match` answers 304.',
  },
  'skill:install:routes': {
    source: 'Field',
    behavior:
      'Installers find the index of a skill and each file below `/.well-known/skills/`, with and without its name in the path.',
  },
  'skill:install:harmless': {
    source: 'House',
    behavior: 'A file of a skill is sent with headers that prevent a browser from running it.',
  },
  'namespace:list:has-skills': {
    source: 'Field',
    behavior: '`hasSkills` filters all namespaces by having skills or not.',
  },

  // Claiming and listing namespaces, which the contract presumes
  'namespace:claim:created': {
    source: 'Field',
    behavior: '`PUT /namespaces/{name}` answers 201 with the namespace, owned by the caller.',
  },
  'namespace:claim:idempotent': {
    source: 'Field',
    behavior: 'Claiming an own namespace again answers 201 with the same `createdAt`.',
  },
  'namespace:claim:taken': {
    source: 'Field',
    behavior: "Claiming another owner's namespace answers 409 with the text `already exists`.",
  },
  'namespace:claim:race': {
    source: 'House',
    behavior: 'If two owners claim one name at once, exactly one gets it and the other gets 409.',
  },
  'namespace:claim:name-invalid': {
    source: 'Field',
    behavior: 'A name outside 3 to 39 lowercase letters, digits and inner hyphens answers 400 `{error}`.',
  },
  'namespace:claim:name-reserved': {
    source: 'House',
    behavior: 'Claiming a first path segment that the service uses or reserves answers 400 `{error}`.',
  },
  'namespace:generate': {
    source: 'Field',
    behavior:
      '`POST /namespaces` without a body answers 201 with a namespace of a generated name that is valid and free.',
  },
  'namespace:list:own': {
    source: 'Field',
    behavior: "`GET /namespaces` answers `{namespaces, pagination}` with the caller's namespaces only.",
  },
  'namespace:list:pages': {
    source: 'Field',
    behavior: '`page` and `pageSize` (1 to 50) page the list; a page past the end answers 200 and an empty array.',
  },
  'namespace:list:search': {
    source: 'Field',
    behavior: 'With a query such as `q` the list searches the names of all owners by prefix.',
  },
} as const satisfies Record<string, Requirement>;
