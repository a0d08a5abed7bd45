import { Injectable } from '@nestjs/common';
import {
  Accounts,
  button,
  card,
  details,
  formOf,
  html,
  jsonText,
  PageSlot,
  snippet,
  timeOf,
  type Html,
  type SlotRequest,
} from '../../extension.js';
import { RecordingsService } from './recordings.service.js';

const CALLS_MAX = 20;

/** Maximum number of displayed characters of arguments and of a result. */
const SHOWN_CHARS_MAX = 1_000;

@Injectable()
export class RecordingSlot {
  constructor(
    private readonly accounts: Accounts,
    private readonly recordingsService: RecordingsService,
  ) {}

  @PageSlot({ place: 'connection', rule: 'connections:read' })
  async show({ person, target, address }: SlotRequest): Promise<((token: Html) => Html) | null> {
    const row = target && (await this.recordingsService.findById(target.id));
    if (!row || row.isMock) return null;
    const [namespace = '', name = ''] = target.name.split('/');
    const isAllowed = (action: 'read' | 'manage' | 'administer') =>
      this.accounts.may(person, action, { kind: 'connection', namespace, name });
    if (!(await isAllowed('read'))) return null;
    const mayChange = await isAllowed('manage');
    const recorded = (await isAllowed('administer'))
      ? await this.recordingsService.callsAfter(row.id, '0', CALLS_MAX)
      : [];
    const { enabled, until, calls, bytes, tools } = await this.recordingsService.describe(row);
    return (token) => {
      const act = (action: string, label: string, look?: string) =>
        formOf({ token, address }, action, [], button(label, { look }));
      return card(
        'recording',
        'Recording',
        html`<p>${enabled && until !== undefined ? html`Tool calls are recorded until ${timeOf(until)}.` : 'Tool calls are not recorded.'}
A mock with the scenario <code>replay:${name}</code> returns the recorded results.</p>
${calls > 0 && html`<p>${calls} ${calls === 1 ? 'call' : 'calls'}, ${Math.ceil(bytes / 1024)} KB: ${tools.map((tool) => html`<code>${tool.name}</code>: ${tool.calls} `)}</p>`}
${
  recorded.length > 0 &&
  html`${details(
    `The first ${recorded.length} recorded calls`,
    html`${recorded.map(({ call: { at, tool, arguments: args, result } }, i) => html`<p>${timeOf(at)} <code>${tool}</code></p>${snippet(`arguments-${i}`, 'Arguments', shorten(args))}${snippet(`result-${i}`, 'Result', shorten(result))}`)}`,
  )}
<p><a href="${address}/fixture" download>Download the recording as a fixture</a></p>`
}
${mayChange && (enabled ? act('stop', 'Stop recording') : act('record', 'Record for 7 days'))}
${mayChange && (calls > 0 || enabled) && act('forget', 'Delete the recorded calls', 'danger')}`,
      );
    };
  }
}

function shorten(value: unknown): string {
  const text = jsonText(value, 2);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}
