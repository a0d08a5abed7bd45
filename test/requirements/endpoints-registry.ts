/** Spec 4.1 and 4.6 to 4.14: servers, releases, schemas, logs, icons, namespaces and skills. */
export const registryEndpoints = [
  // Spec 4.1: create a server
  'server:create:deprecated-route | Spec 4.1, Field | `PUT /namespaces/{namespace}/servers/{server}` answers 201 with the server record, its address in `Location`, and its successor in `Link` beside `Deprecation`.',
  'server:create:replacement | Spec 4.1, Field | `PUT /servers/{qualifiedName}` takes the same body and answers 201 with the same record.',
  'server:create:namespace-only | Spec 4.1, Field | `PUT /servers/{namespace}` creates the namespace-only server.',
  'server:create:idempotent | Spec 4.1 | Repeating the PUT by either route answers 201 with the same record and `createdAt`, and creates no second server.',
  'server:create:repeat-applies | Spec 4.1, House | A PUT of an existing server by either route applies the members of the body, leaves absent and null ones, and answers 201 with the record.',
  'server:create:body-optional | Spec 4.1, Field | Neither body field is required, nor is the body itself.',
  'server:create:body-types | Spec 4.1 | A `displayName` or `description` that is neither null nor a string answers 400 `{error}`.',
  'server:create:name-invalid | Spec 4.1, Field | A server name outside 3 to 39 letters, digits, `_` and `-`, alphanumeric first, answers 400 `{error}`.',
  "server:create:foreign | Spec 4.1, 5, 7 | Creating in another owner's namespace, by either route, answers 403 `Forbidden: You don't own this server` and creates nothing.",
  'server:create:namespace-missing | Spec 4.1, Field | Creating in a namespace that does not exist answers 404 `{error: "Namespace not found"}`.',

  // Spec 4.6: list releases
  'release:list:order | Spec 1, 4.6 | `GET /servers/{qualifiedName}/releases` lists the releases most recent first.',
  'release:list:shape | Spec 4.6 | The answer is `{releases, pagination}` with the integers currentPage, pageSize, totalPages and totalCount.',
  'release:list:page | Spec 4.6, 8 | `page` accepts the integers 1 to 9007199254740991 and defaults to 1; others answer 400 `{error}`.',
  'release:list:page-size | Spec 4.6, 8 | `pageSize` accepts the integers 1 to 100 and defaults to 20; others answer 400 `{error}`.',
  'release:list:past-end | Spec 4.6, Field | A page past the end, up to the highest number allowed, answers 200 with no releases.',
  'release:list:not-found | Spec 4.6, 7 | Listing the releases of an unknown or foreign server answers 404 `{error: "Server not found"}`.',

  // Spec 4.7: resume a release
  'release:resume:answer | Spec 3, 4.7 | `POST …/releases/{id}/resume` without a body answers 202 `{status: "WORKING", deploymentId}` with a UUID.',
  'release:resume:latest | Spec 3, 4.7 | The id `latest` means the most recent release.',
  'release:resume:not-found | Spec 4.7, 7 | Resuming a release of an unknown or foreign server answers 404 `{error: "Server not found"}`.',
  'release:resume:unknown-id | Spec 4.7, Field | Resuming a release that the server does not have answers 404 `{error}`.',

  // Spec 4.8: infer a tool output schema
  'output-schema:answer | Spec 1, 4.8 | `GET …/experimental/tools/{toolName}/output-schema` answers 200 with the schema inferred from recent tool outputs.',
  'output-schema:successful-only | Spec 1, 4.8 | Results of failed tool calls are not samples.',
  'output-schema:no-samples | Spec 4.8, 7 | A tool without samples answers 404 `{error: "No output samples found"}`.',
  'output-schema:recent | Spec 1, 4.8 | Results count for four to five weeks, whatever was released meanwhile, and are then deleted.',

  // Spec 4.9: list runtime logs
  'logs:list:shape | Spec 4.9 | `GET /servers/{qualifiedName}/logs` answers 200 `{invocations, total}`, newest first.',
  'logs:list:grouped | Spec 1, 4.9 | An invocation contains all its log lines and exceptions.',
  'logs:list:from | Spec 4.9 | `from` (ISO 8601) excludes earlier invocations.',
  'logs:list:to | Spec 4.9 | `to` (ISO 8601) excludes invocations at and after it.',
  'logs:list:time-invalid | Spec 4.9, House | A `from` or `to` that is not a timestamp answers 400 `{error}`.',
  'logs:list:limit | Spec 4.9, 8 | `limit` accepts the integers 1 to 100 and defaults to 20; others answer 400 `{error}`.',
  'logs:list:search | Spec 4.9 | `search` returns only the invocations with that text in a log message.',
  'logs:list:total | Spec 4.9, Field | `total` is the integer number of invocations that match, not of those returned.',
  'logs:list:not-found | Spec 4.9, 7 | The logs of an unknown server answer 404 `{error: "Server not found"}`.',

  // Spec 4.10: get a server
  'server:get:found | Spec 4.10 | `GET /servers/{qualifiedName}` answers 200 with the server detail.',
  'server:get:current-release | Spec 4.10 | The detail carries connections, tools and security status of the current release.',
  'server:get:not-found | Spec 4.10, 7 | Getting an unknown server answers 404 `{error: "Server not found"}`.',

  // Spec 4.11: delete a server
  'server:delete:deleted | Spec 4.11 | `DELETE /servers/{qualifiedName}` answers 200 `{success: true, namespace, server}` and deletes the server permanently.',
  'server:delete:namespace-only | Spec 4.11, Field | Deleting a namespace-only server answers with `server: ""` and keeps the other servers of the namespace.',
  'server:delete:cascades | Spec 4.11 | Deleting a server deletes its releases and associated resources.',
  'server:delete:not-found | Spec 4.11, 7 | Deleting an unknown or already deleted server answers 404 `{error: "Server not found"}`.',
  "server:delete:foreign | Spec 4.11, Field | Deleting another owner's server has exactly the answer of a missing one and deletes nothing.",

  // Spec 4.12: server icon
  'icon:get:image | Spec 1, 4.12 | `GET /servers/{qualifiedName}/icon` answers the image bytes with the content type of the image.',
  'icon:get:too-large | Spec 4.12, 7 | An icon over the size limit answers 413 `{error: "File too large"}`.',
  'icon:get:none | Spec 4.12, House | A server without an icon answers 404 `{error: "Icon not found"}`.',

  // Spec 4.13: delete a namespace
  'namespace:delete:deleted | Spec 4.13 | `DELETE /namespaces/{name}` answers 200 `{success: true, name}` and the name can be claimed again.',
  'namespace:delete:holds-servers | Spec 4.13, 8 | A namespace that holds a server answers 409 `{error}` and keeps everything in it.',
  'namespace:delete:cascades-connections | Spec 4.13 | Deleting a namespace deletes its connections: a namespace claimed under the same name has none.',
  'namespace:delete:cascades-skills | Spec 4.13 | Deleting a namespace deletes its skills.',
  'namespace:delete:foreign | Spec 4.13, 5 | Deleting another owner\'s namespace answers 403 `{error: "Unauthorized"}` and deletes nothing.',
  'namespace:delete:no-key | Spec 4.13, 7 | Deleting a namespace without a valid key answers 401 `{error: "Unauthorized"}`.',
  'namespace:delete:not-found | Spec 4.13, Field | Deleting a namespace that does not exist answers 404 `{error: "Namespace not found"}`.',

  // Spec 4.14: delete a skill
  'skill:delete:deleted | Spec 1, 4.14 | `DELETE /skills/{namespace}/{slug}` answers 200 `{success: true, qualifiedName}` and deletes the skill.',
  "skill:delete:foreign | Spec 4.14, 5 | Deleting a skill in another owner's namespace is refused with a string `error` and deletes nothing.",
  'skill:delete:not-found | Spec 4.14, 7 | Deleting an unknown skill answers 404 with a string in `error`.',

  // Publishing, finding and installing skills: our own promises where the contract is silent
  'skill:publish:git | Field | `PUT /skills/{namespace}/{slug}` with a `gitUrl` fetches the repository and answers 201 for a new skill, 200 for a replaced one.',
  'skill:publish:git-conflict | Field | A folder of a repository that another skill uses answers 409 with the code `GIT_URL_CONFLICT`.',
  "skill:publish:upload | Field | `PUT /skills/{namespace}/{slug}/upload` accepts a zip of the skill's folder, or of its contents, in the part `archive`.",
  'skill:publish:skill-md | Field | A SKILL.md without a valid name and description in its front matter is refused with 422, the code `INVALID_SKILL_MD` and the required change.',
  'skill:publish:error-shape | Field | Every error of publishing a skill is `{error, code}`, both strings.',
  'skill:read:record | Field | A skill has every field that published clients read, and a list of skills has its pagination.',
  'skill:read:search | Field | A search finds skills by words of slug, name and description, tolerates typos, and lists the best match first.',
  'skill:read:anonymous | Field | Skills can be read without a key only with `PUBLIC_READS=true`, and never with a wrong key.',
  'skill:install:routes | Field | Installers find the index of a skill and each file below `/.well-known/skills/`, with and without its name in the path.',
  'skill:install:discovery | Field | `/.well-known/agent-skills/index.json` and `/.well-known/skills/index.json` list the skills of the origin, and below `/skills/{namespace}` those of the namespace; a digest is that of the downloaded bytes.',
  'namespace:list:has-skills | Field | `hasSkills` filters all namespaces by having skills or not.',

  // Claiming and listing namespaces, which the contract presumes
  'namespace:claim:created | Field | `PUT /namespaces/{name}` answers 201 with the namespace, owned by the caller.',
  'namespace:claim:idempotent | Field | Claiming an own namespace again answers 201 with the same `createdAt`.',
  "namespace:claim:taken | Field | Claiming another owner's namespace answers 409 with the text `already exists`.",
  'namespace:claim:name-invalid | Field | A name outside 3 to 39 lowercase letters, digits and inner hyphens answers 400 `{error}`.',
  'namespace:generate | Field | `POST /namespaces` without a body answers 201 with a namespace of a generated name that is valid and free.',
  "namespace:list:own | Field | `GET /namespaces` answers `{namespaces, pagination}` with the caller's namespaces only.",
  'namespace:list:pages | Field | `page` and `pageSize` (1 to 50) page the list; a page past the end answers 200 and an empty array.',
  'namespace:list:search | Field | With a query such as `q` the list searches the names of all owners by prefix.',
];
