import {
  buttonLink,
  card,
  html,
  notice,
  stateOf,
  stepOf,
  steps,
  type Connections,
  type Framed,
  type ListedTool,
} from '../../../extension.js';
import { ADD_STEPS } from './add.page.js';
import { offeredToolsForm, type OfferedTools } from './offered-tools.page.js';

export type Connection = Awaited<ReturnType<Connections['find']>>;

/**
 * @param tools null while the server has listed none @param setup address of the setup page; null if nothing is pending
 * @param access address of the next step
 */
export function toolsStep(
  { name, status, suspended }: Connection,
  {
    isAdding,
    tools,
    fault,
    setup,
    address,
    access,
    ...form
  }: OfferedTools & { tools: ListedTool[] | null; fault: string | null; setup: string | null; access: string },
): Framed {
  const { state, message } = status;
  const shown = stateOf({ status, suspended }, { isManager: true });
  return {
    title: `${name}: which tools`,
    crumbs: [['Home', 'ui/'], [name]],
    head: {
      lead: html`${isAdding && 'It is added. '}Choose the tools that it offers to apps${isAdding && '; you can change this later'}.
With all ticked it also offers those that its server adds later.`,
    },
    ...(isAdding && { tabs: steps(ADD_STEPS, 2) }),
    body: html`${fault !== null && notice(fault, 'bad')}
${
  tools === null
    ? card(
        'state',
        'Not known yet',
        html`<p>${shown.badge} ${shown.detail}</p>
${message !== undefined && html`<p>${message}</p>`}
${setup === null && html`<p>${stepOf(status)}</p>`}
${setup !== null && html`<p>${buttonLink(setup, state === 'input_required' ? 'Enter the values' : 'Log in', { look: 'primary' })}</p>`}
<p>Its server has not listed its tools. <a href="${address}/tools">Ask it again</a></p>
${isAdding && html`<p><a href="${access}">Go on: it offers all of them</a></p>`}`,
      )
    : offeredToolsForm(tools, { ...form, address: `${address}/tools`, isAdding })
}`,
  };
}
