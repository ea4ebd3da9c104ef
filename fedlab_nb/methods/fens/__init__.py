"""FENS: keep all client models and learn how to combine them. `method` is the algorithm from top to bottom.

Allouah et al., *Revisiting Ensembling in One-Shot Federated Learning*, NeurIPS 2024. The parts: `aggregators` are the
trained rules f_λ, `fixed_rules` those that are counted; `proxies` the samples that λ is trained on, `steps` one step of
SGD; `model` is what predicts and what is left behind, `cost` one client's bytes, `influence` what is watched.

Departures from the paper, and why:
- J local steps (the paper's K): the pseudo-code's loop from 0 to K makes K+1, but the table of settings says 1.
- Clients count by the samples they used, as in the public code; the pseudo-code's 1/|S_t| is client_weights=uniform.
- The network has biases; per-class weights start at 1/M, plain averaging (public code: start=xavier).
- FedAdam's β₁ = 0.9, β₂ = 0.99 and κ = 0.001 (knobs) are the public code's; the paper gives none. m and v start at 0.
- `per_round` clients take part in a round of phase 2, all of them by default, as in the paper's experiments.
- Weights are quantised, a scale a tensor; activations only with `activation_bits`, by ranges that each client measures
  on what it held out (the public code: on test data).
- Rules that leave the ensemble at the server use the quantised models as well, so that rules differ in the rule alone.
- Classroom preset: per-class weights, T = 50, η_s = 0.01. Beside a toy model 500 rounds of a network are not tiny.
- A client that held nothing out is in no S_t and gets no aggregator, though the ensemble. As in the paper's count, the
  last λ does not go down again. The loss and the tables that are shown are ours to watch and are not sent.

The paper's extensions: `distil` teaches one network on public images, at the server (KL at temperature 3, Adam 1e-3;
the paper gives no numbers, so these, and the 800 steps, are ours). The student has 86 %, FENS 88 (digits, M = 10,
alpha = 0.1, seeds 0-9: 2 ± 1 points less, clear). `without` forgets a client: phase 1 as it was, then ensemble and
phase 2 without its model and samples. proxy="server" is the labelled set at the server: λ is trained there, nothing
goes down. It stands for data that the server has anyway; here the held-out parts are sent for it (phase "labelled
set"). Downsized clients are a narrower `model`: 20 of resnet8:28 weigh one resnet8:128.

Findings (digits, M = 10, alpha = 0.1, seeds 0-9, percent; `notebooks/studies/03_fens.toml`): held-out samples 88, as
many training samples used again 89; FedAdam with 20 rounds 95; class counts 51. At alpha = 1 class counts have 93,
per-class weights 92.
With M = 50 the network's units die on most seeds at the classroom's rates (17 ± 8 %). T = 500 and η_s = 0.001
repair it (89 ± 2 %).
"""

from .method import Fens
