; Modelled on an AGIPD: modules on a leading axis, ASICs along ss, quadrants that move together.
photon_energy = 9.3 keV      ; a comment behind a value
clen = 200 mm
res = 5000
adu_per_photon = 60
data = /entry_1/data_1/data
mask = /entry_1/data_1/mask
mask_good = 0
mask_bad = 0xff
dim0 = %
dim2 = ss
dim3 = fs
peak_list = /entry_1/result_1

rigid_group_q0 = p0a0,p0a1
rigid_group_q1 = p1a0, p1a1
rigid_group_collection_quadrants = q0,q1
group_all = q0,q1

p0a0/dim1 = 0
p0a0/min_fs = 0
p0a0/max_fs = 15
p0a0/min_ss = 0
p0a0/max_ss = 7
p0a0/fs = +0.002x -0.999998y
p0a0/ss = +0.999998x +0.002y
p0a0/corner_x = -30.5
p0a0/corner_y = 20.25
p0a0/coffset = 0.001

p0a1/dim1 = 0
p0a1/min_fs = 0
p0a1/max_fs = 15
p0a1/min_ss = 8
p0a1/max_ss = 15
p0a1/fs = +0.002x -0.999998y
p0a1/ss = +0.999998x +0.002y
p0a1/corner_x = -20.5
p0a1/corner_y = 20.25

p1a0/dim1 = 1
p1a0/min_fs = 0
p1a0/max_fs = 15
p1a0/min_ss = 0
p1a0/max_ss = 7
p1a0/fs = -x +0.01z
p1a0/ss = - 1.0y
p1a0/corner_x = 20
p1a0/corner_y = 0

p1a1/dim1 = 1
p1a1/min_fs = 0
p1a1/max_fs = 15
p1a1/min_ss = 8
p1a1/max_ss = 15
p1a1/fs = -x
p1a1/ss = -y
p1a1/corner_x = 20
p1a1/corner_y = -10
